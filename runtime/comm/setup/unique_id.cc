// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/unique_id.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "runtime/base/random.h"
#include "runtime/base/wire.h"
#include "runtime/net/socket.h"

namespace railhead::comm {
namespace {

constexpr absl::string_view kMagic = "RHID1";
constexpr size_t kKeySize = 16;

}  // namespace

absl::StatusOr<UniqueId> MakeUniqueId(const net::IpAddress& address) {
  const absl::StatusOr<std::string> key = RandomBytes(kKeySize);
  if (!key.ok()) return key.status();
  absl::StatusOr<net::Fd> listener = net::Listen(std::nullopt, 0);
  if (!listener.ok()) return listener.status();
  const absl::StatusOr<net::SocketAddress> bound = net::LocalAddress(listener->get());
  if (!bound.ok()) return bound.status();
  // From here on, the duplicate keeps the socket open.
  const int number = ::fcntl(listener->get(), F_DUPFD_CLOEXEC, 0);
  if (number < 0) return net::ErrnoError("fcntl", errno);
  return UniqueId{address, bound->port, absl::BytesToHexString(*key), number};
}

std::string Encode(const UniqueId& id) {
  WireWriter writer;
  writer.Raw(kMagic);
  writer.String(id.address.Bytes());
  writer.U16(id.port);
  writer.String(id.key);
  writer.U32(static_cast<uint32_t>(id.listener));
  std::string bytes = writer.Take();
  bytes.resize(kUniqueIdSize, '\0');
  return bytes;
}

absl::StatusOr<UniqueId> ParseUniqueId(absl::string_view bytes) {
  WireReader reader(bytes);
  const bool magic = reader.Raw(kMagic.size()) == kMagic;
  const absl::StatusOr<net::IpAddress> address = net::IpAddress::FromBytes(reader.String(16));
  UniqueId id;
  id.port = reader.U16();
  id.key = reader.String(2 * kKeySize);
  id.listener = static_cast<int>(reader.U32());
  if (!magic || !reader.ok() || !address.ok() || id.port == 0 || id.key.size() != 2 * kKeySize) {
    return absl::InvalidArgumentError(
        "the unique id is not one that rhGetUniqueId made; carry all 128 bytes to every rank");
  }
  id.address = *address;
  return id;
}

std::optional<net::Fd> TakeListener(const UniqueId& id) {
  int listening = 0;
  socklen_t length = sizeof listening;
  if (::getsockopt(id.listener, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 ||
      listening == 0) {
    return std::nullopt;
  }
  const absl::StatusOr<net::SocketAddress> bound = net::LocalAddress(id.listener);
  if (!bound.ok() || bound->port != id.port) return std::nullopt;
  return net::Fd(id.listener);
}

}  // namespace railhead::comm
