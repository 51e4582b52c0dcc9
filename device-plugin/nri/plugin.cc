// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/nri/plugin.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/file_descriptor.h"
#include "device-plugin/nri/session.h"
#include "kube/monotonic.h"

namespace railhead::device_plugin::nri {
namespace {

// The runtime drops a plugin that has not registered within 5 s.
constexpr absl::Duration kRegistration = absl::Seconds(10);
// Limits the wait for a runtime that does not read, as its containers wait for the plugin.
constexpr timeval kSendTimeout = {5, 0};

absl::StatusOr<FileDescriptor> Connect(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("--nri-socket: ", path, " is longer than the ",
                                                   sizeof(address.sun_path) - 1,
                                                   " bytes that Unix sockets allow"));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "cannot make a Unix socket");
  if (setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof(kSendTimeout)) != 0 ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot connect to the container runtime at ", path,
                                            " (NRI is on by default in containerd 2 and CRI-O; in "
                                            "containerd 1.7 it is off by default)"));
  }
  return fd;
}

absl::Status SendAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return absl::ErrnoToStatus(errno, "NRI: cannot respond to the container runtime");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

// Waits until `fd` is readable: Cancelled when `stop_fd` is, DeadlineExceeded after `at_most`.
absl::Status Wait(int fd, int stop_fd, absl::Duration at_most) {
  std::array<pollfd, 2> waits = {pollfd{stop_fd, POLLIN, 0}, pollfd{fd, POLLIN, 0}};
  const int timeout = at_most == absl::InfiniteDuration()
                          ? -1
                          : static_cast<int>(absl::ToInt64Milliseconds(at_most));
  int ready = 0;
  do {
    ready = poll(waits.data(), fd < 0 ? 1 : waits.size(), timeout);
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) return absl::ErrnoToStatus(errno, "cannot wait");
  if (waits[0].revents != 0) return absl::CancelledError("stop requested");
  return ready > 0 ? absl::OkStatus() : absl::DeadlineExceededError("timed out");
}

}  // namespace

void Plugin::Run(int stop_fd) {
  while (true) {
    const absl::Time begin = kube::MonotonicNow();
    const absl::Status end = Converse(stop_fd);
    registered_ = false;
    if (absl::IsCancelled(end)) return;
    const absl::Duration pause = backoff_.After(kube::MonotonicNow() - begin);
    spdlog::warn("{}; retrying in {}", std::string(end.message()), absl::FormatDuration(pause));
    if (absl::IsCancelled(Wait(-1, stop_fd, pause))) return;
  }
}

absl::Status Plugin::Converse(int stop_fd) {
  const absl::StatusOr<FileDescriptor> socket = Connect(socket_);
  if (!socket.ok()) return socket.status();
  const int fd = socket->get();
  Session session;
  if (absl::Status sent = SendAll(fd, Session::Introduction()); !sent.ok()) return sent;
  const absl::Time deadline = kube::MonotonicNow() + kRegistration;
  std::array<char, size_t{64} << 10> buffer;
  while (true) {
    // After registration there is no time limit between requests.
    absl::Status waited =
        Wait(fd, stop_fd,
             registered_ ? absl::InfiniteDuration()
                         : std::max(absl::ZeroDuration(), deadline - kube::MonotonicNow()));
    if (absl::IsDeadlineExceeded(waited)) {
      return absl::DeadlineExceededError(absl::StrCat(
          "NRI: the container runtime did not respond to the plugin's registration within ",
          absl::FormatDuration(kRegistration)));
    }
    if (!waited.ok()) return waited;
    const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "NRI: cannot read from the container runtime");
    if (got == 0) return absl::UnavailableError("NRI: the container runtime closed the connection");
    const absl::StatusOr<std::string> answers =
        session.Take(absl::string_view(buffer.data(), static_cast<size_t>(got)));
    if (!answers.ok()) return answers.status();
    if (absl::Status sent = SendAll(fd, *answers); !sent.ok()) return sent;
    if (!registered_ && !session.runtime().empty()) {
      registered_ = true;
      spdlog::info("registered with {}", session.runtime());
    }
    for (const std::string& container : session.TakeRaised()) {
      ++raised_;
      spdlog::info("{}: has an RDMA device and can now pin memory without limit", container);
    }
  }
}

absl::Status Plugin::Ready() const {
  if (registered_) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the container runtime at ", socket_, " has not accepted the plugin"));
}

std::string Plugin::Metrics() const {
  return absl::StrCat(
      "# HELP railhead_memlock_registered Whether the plugin is registered for new "
      "containers.\n"
      "# TYPE railhead_memlock_registered gauge\n"
      "railhead_memlock_registered ",
      registered_ ? 1 : 0,
      "\n# HELP railhead_memlock_raised_total Containers that the plugin has allowed to pin memory "
      "without limit.\n"
      "# TYPE railhead_memlock_raised_total counter\n"
      "railhead_memlock_raised_total ",
      raised_.load(), "\n");
}

}  // namespace railhead::device_plugin::nri
