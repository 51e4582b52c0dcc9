// SPDX-License-Identifier: Apache-2.0
#include "runtime/net/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/net/socket.h"

namespace railhead::net {
namespace {

struct AbstractAddress {
  sockaddr_un address = {};
  socklen_t size = 0;
};

absl::StatusOr<AbstractAddress> AbstractAddressOf(absl::string_view name) {
  constexpr size_t kLongest = 100;
  if (name.size() > kLongest) {
    return absl::InvalidArgumentError(absl::StrCat("the name of a local socket has ", name.size(),
                                                   " bytes, more than ", kLongest));
  }
  AbstractAddress local;
  local.address.sun_family = AF_UNIX;
  // The first byte is 0: the name is abstract.
  std::memcpy(&local.address.sun_path[1], name.data(), name.size());
  local.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return local;
}

absl::StatusOr<Fd> NewLocalSocket() {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoError("socket", errno);
  return fd;
}

}  // namespace

absl::StatusOr<Fd> BindLocal(absl::string_view name) {
  const absl::StatusOr<AbstractAddress> local = AbstractAddressOf(name);
  if (!local.ok()) return local.status();
  absl::StatusOr<Fd> fd = NewLocalSocket();
  if (!fd.ok()) return fd;
  if (::bind(fd->get(), reinterpret_cast<const sockaddr*>(&local->address), local->size) == 0) {
    return fd;
  }
  if (errno == EADDRINUSE) return absl::AlreadyExistsError("another process has this name");
  return ErrnoError("bind a local socket", errno);
}

absl::Status ListenLocal(const Fd& socket) {
  if (::listen(socket.get(), SOMAXCONN) == 0) return absl::OkStatus();
  return ErrnoError("listen on a local socket", errno);
}

absl::StatusOr<Fd> DialLocal(absl::string_view name, absl::Time deadline, const Halt& halt) {
  const absl::StatusOr<AbstractAddress> local = AbstractAddressOf(name);
  if (!local.ok()) return local.status();
  absl::StatusOr<Fd> fd = NewLocalSocket();
  if (!fd.ok()) return fd;
  fd->KeepFromChildren();
  const auto* const address = reinterpret_cast<const sockaddr*>(&local->address);
  while (::connect(fd->get(), address, local->size) != 0) {
    if (errno == ECONNREFUSED) return absl::NotFoundError("no process listens at this name");
    if (errno != EAGAIN && errno != EINTR) return ErrnoError("connect to a local socket", errno);
    if (MonotonicNow() >= deadline) {
      return absl::DeadlineExceededError("the queue of connections of a local socket stays full");
    }
    if (absl::Status halted = SleepUntil(MonotonicNow() + absl::Milliseconds(1), halt);
        !halted.ok()) {
      return halted;
    }
  }
  return fd;
}

bool IsOurUser(int fd) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace railhead::net
