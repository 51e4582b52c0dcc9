// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/segment_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/base/random.h"
#include "runtime/net/local_socket.h"
#include "runtime/net/socket.h"

namespace railhead::shm {
namespace {

// The address is the name of the socket, and the key that a taker has to show: 16 bytes each, in
// hexadecimal digits.
constexpr size_t kWord = SegmentServer::kAddressSize / 2;
// Maximum time to read a client's key: a client that sends nothing must not block the others.
constexpr absl::Duration kIntroduction = absl::Seconds(1);

std::string NameOf(absl::string_view word) { return absl::StrCat("railhead-", word); }

// Returns true if the client runs as this user and has sent the key.
bool Introduced(int fd, absl::string_view key, absl::Time deadline) {
  if (!net::IsOurUser(fd)) return false;
  std::string said;
  while (said.size() < key.size()) {
    if (!net::WaitReadable(fd, deadline).ok()) return false;
    const absl::StatusOr<bool> open = net::ReceiveSome(fd, key.size() - said.size(), &said);
    if (!open.ok() || !*open) return false;
  }
  return said == key;
}

// A descriptor travels as an attachment of one byte.
union Attachment {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

absl::Status SendDescriptor(int socket, int fd) {
  char byte = 0;
  iovec payload = {&byte, 1};
  Attachment attachment = {};
  msghdr message = {};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = attachment.bytes;
  message.msg_controllen = sizeof(attachment.bytes);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  if (sendmsg(socket, &message, MSG_NOSIGNAL) != 1) return net::ErrnoError("sendmsg", errno);
  return absl::OkStatus();
}

absl::StatusOr<net::Fd> ReceiveDescriptor(int socket) {
  char byte = 0;
  iovec payload = {&byte, 1};
  Attachment attachment = {};
  msghdr message = {};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = attachment.bytes;
  message.msg_controllen = sizeof(attachment.bytes);
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return net::ErrnoError("recvmsg", errno);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (got != 1 || header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return absl::UnavailableError("the other side closed the connection");
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  return net::Fd(fd);
}

}  // namespace

std::string PlaceOfProcess() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat network = {};
  if (!(file >> boot) || stat("/proc/self/ns/net", &network) != 0) return "";
  return absl::StrCat(boot, " ", network.st_dev, ":", network.st_ino, " ", geteuid());
}

absl::StatusOr<SegmentServer> SegmentServer::Open() {
  const absl::StatusOr<std::string> random = RandomBytes(kWord);  // half of it for each word
  if (!random.ok()) return random.status();
  std::string address = absl::BytesToHexString(*random);
  absl::StatusOr<net::Fd> fd = net::BindLocal(NameOf(absl::string_view(address).substr(0, kWord)));
  if (!fd.ok()) return fd.status();
  if (absl::Status listens = net::ListenLocal(*fd); !listens.ok()) return listens;
  return SegmentServer(*std::move(fd), std::move(address));
}

absl::Status SegmentServer::Give(const Segment& segment, int takers, absl::Time deadline,
                                 const Halt& halt) const {
  const absl::string_view key = absl::string_view(address_).substr(kWord);
  for (int given = 0; given < takers;) {
    absl::Status waited = net::WaitReadable(socket_.get(), deadline, halt);
    // Clients without the key may keep the socket readable.
    waited.Update(CheckHalt(halt));
    if (absl::IsDeadlineExceeded(waited) || (waited.ok() && MonotonicNow() >= deadline)) {
      return absl::DeadlineExceededError(
          absl::StrCat(takers - given, " of ", takers, " ranks did not fetch the shared memory"));
    }
    if (!waited.ok()) return waited;
    // At the limit of descriptors who waits stays readable, and trying again would spin.
    const absl::StatusOr<net::Fd> taker = net::Accept(socket_.get());
    if (!taker.ok()) {
      return absl::Status(taker.status().code(),
                          absl::StrCat("cannot give ", takers - given, " of ", takers,
                                       " ranks shared memory: ", taker.status().message()));
    }
    if (!taker->valid()) continue;
    if (!Introduced(taker->get(), key, std::min(deadline, MonotonicNow() + kIntroduction))) {
      continue;
    }
    if (absl::Status sent = SendDescriptor(taker->get(), segment.fd()); !sent.ok()) return sent;
    ++given;
  }
  return absl::OkStatus();
}

absl::StatusOr<Segment> Take(absl::string_view address, size_t bytes, absl::Time deadline,
                             const Halt& halt) {
  if (address.size() != SegmentServer::kAddressSize) {
    return absl::InvalidArgumentError("the address of the shared memory is malformed");
  }
  const absl::StatusOr<net::Fd> dialed =
      net::DialLocal(NameOf(address.substr(0, kWord)), deadline, halt);
  if (!dialed.ok()) {
    const absl::StatusCode code =
        absl::IsNotFound(dialed.status()) ? absl::StatusCode::kUnavailable : dialed.status().code();
    return absl::Status(code, absl::StrCat("cannot reach the rank that has the shared memory: ",
                                           dialed.status().message()));
  }
  const net::Fd& fd = *dialed;
  if (absl::Status said = net::SendAll(fd.get(), address.substr(kWord), deadline); !said.ok()) {
    return said;
  }
  if (absl::Status waited = net::WaitReadable(fd.get(), deadline, halt); !waited.ok()) {
    return waited;
  }
  absl::StatusOr<net::Fd> segment = ReceiveDescriptor(fd.get());
  if (!segment.ok()) return segment.status();
  return Segment::Open(*std::move(segment), bytes);
}

}  // namespace railhead::shm
