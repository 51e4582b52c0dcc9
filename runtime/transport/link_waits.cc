// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/link_waits.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "runtime/net/socket.h"

namespace railhead::transport {
absl::Status LinkWaits::Control(int operation, int fd, uint32_t events) const {
  if (epoll_ < 0) return absl::OkStatus();
  epoll_event event{};
  event.events = events;
  event.data.ptr = tag_;
  if (::epoll_ctl(epoll_, operation, fd, &event) == 0) return absl::OkStatus();
  return net::ErrnoError("epoll_ctl", errno);
}

absl::Status LinkWaits::MoveTo(int epoll, void* tag) {
  absl::Status moved;
  for (const auto& [fd, events] : watched_) moved.Update(Control(EPOLL_CTL_DEL, fd, 0));
  epoll_ = epoll;
  tag_ = tag;
  for (const auto& [fd, events] : watched_) moved.Update(Control(EPOLL_CTL_ADD, fd, events));
  return moved;
}

absl::Status LinkWaits::Watch(int fd, uint32_t events) {
  const auto known = std::find_if(watched_.begin(), watched_.end(),
                                  [fd](const auto& entry) { return entry.first == fd; });
  if (known == watched_.end()) {
    if (events == 0) return absl::OkStatus();
    absl::Status added = Control(EPOLL_CTL_ADD, fd, events);
    if (added.ok()) watched_.emplace_back(fd, events);
    return added;
  }
  known->second = events;
  if (events != 0) return Control(EPOLL_CTL_MOD, fd, events);
  watched_.erase(known);
  return Control(EPOLL_CTL_DEL, fd, 0);
}

}  // namespace railhead::transport
