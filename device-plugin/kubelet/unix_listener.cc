// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/unix_listener.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace railhead::device_plugin {
namespace {

// If accept fails for lack of descriptors, the connection remains pending and poll returns at once.
constexpr int kPauseMilliseconds = 100;

bool MayConnect(int fd, const std::string& path) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid == 0 || peer.uid == geteuid()) return true;
  spdlog::warn("rejected a connection to {} from process {} of user {}", path, peer.pid, peer.uid);
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Start(
    const std::string& path, std::function<void(FileDescriptor)> take) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the socket path ", path, " is longer than the ",
                                                   sizeof(address.sun_path) - 1,
                                                   " bytes that Unix sockets allow"));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "cannot create a Unix socket");
  // No process can connect before listen(), and the mode is set before that.
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(path.c_str(), 0600) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot serve on ", path));
  }
  FileDescriptor stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return absl::ErrnoToStatus(errno, "cannot create an eventfd");
  return std::unique_ptr<UnixListener>(
      new UnixListener(std::move(fd), std::move(stop), path, std::move(take)));
}

UnixListener::UnixListener(FileDescriptor socket, FileDescriptor stop, std::string path,
                           std::function<void(FileDescriptor)> take)
    : socket_(std::move(socket)),
      stop_(std::move(stop)),
      path_(std::move(path)),
      take_(std::move(take)),
      thread_([this] { Run(); }) {}

UnixListener::~UnixListener() {
  const uint64_t one = 1;
  // It cannot fail: the counter is far from full.
  static_cast<void>(!write(stop_.get(), &one, sizeof(one)));
  thread_.join();
}

void UnixListener::Run() {
  pollfd watched[] = {{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  while (true) {
    if (poll(watched, 2, -1) < 0) continue;  // a signal
    if (watched[1].revents != 0) return;
    FileDescriptor fd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
        poll(&watched[1], 1, kPauseMilliseconds);
      }
      continue;
    }
    if (MayConnect(fd.get(), path_)) take_(std::move(fd));
  }
}

}  // namespace railhead::device_plugin
