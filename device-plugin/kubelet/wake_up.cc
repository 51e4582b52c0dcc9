// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/wake_up.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace railhead::device_plugin {
namespace {

// Reads a non-blocking descriptor until it is empty. The content does not matter: the loop checks
// everything.
void Drain(int fd) {
  std::array<char, 4096> buffer;
  while (read(fd, buffer.data(), buffer.size()) > 0) {
  }
}

FileDescriptor WatchFolder(const std::string& folder) {
  FileDescriptor inotify(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  constexpr uint32_t kEvents = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM;
  if (inotify_add_watch(inotify.get(), folder.c_str(), kEvents) < 0) inotify.Close();
  return inotify;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WakeUp>> WakeUp::Make(const std::string& folder) {
  struct stat info = {};
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return absl::NotFoundError(absl::StrCat(
        folder, " is not a directory; --kubelet-dir must be kubelet's device plugin directory"));
  }
  FileDescriptor event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event.valid()) return absl::ErrnoToStatus(errno, "cannot create an event descriptor");
  return std::unique_ptr<WakeUp>(new WakeUp(std::move(event), WatchFolder(folder)));
}

void WakeUp::Wake() const {
  const uint64_t one = 1;
  // It fails only if a wake-up is already pending.
  [[maybe_unused]] const ssize_t put = write(event_.get(), &one, sizeof(one));
}

bool WakeUp::Sleep(int stop_fd, std::chrono::milliseconds at_most) const {
  std::array<pollfd, 3> fds = {pollfd{stop_fd, POLLIN, 0}, pollfd{event_.get(), POLLIN, 0},
                               pollfd{inotify_.get(), POLLIN, 0}};  // poll ignores -1
  const int64_t timeout = std::clamp<int64_t>(at_most.count(), 0, 60000);
  if (poll(fds.data(), fds.size(), static_cast<int>(timeout)) <= 0) return false;
  if (fds[1].revents != 0) Drain(event_.get());
  if (fds[2].revents != 0) Drain(inotify_.get());
  return fds[0].revents != 0;
}

}  // namespace railhead::device_plugin
