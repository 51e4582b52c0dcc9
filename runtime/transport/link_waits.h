// SPDX-License-Identifier: Apache-2.0
//
// The descriptors that a link waits for, in the epoll of the thread that sleeps on the link. They
// change with its connections. Used by Reconnector, RecoveringLink and wires.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_LINK_WAITS_H_
#define RAILHEAD_RUNTIME_TRANSPORT_LINK_WAITS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace railhead::transport {

// Use from one thread at a time.
class LinkWaits {
 public:
  // Moves all descriptors, also later ones, to this epoll, with `tag` as their data; -1: to none.
  // The epoll must stay open until the next call or the end of this object.
  absl::Status MoveTo(int epoll, void* tag);

  // Waits for these events of a descriptor (EPOLLIN, ...) and no others; 0 removes it. Remove it
  // before it is closed. A file that several links wait for needs a descriptor for each.
  absl::Status Watch(int fd, uint32_t events);

 private:
  absl::Status Control(int operation, int fd, uint32_t events) const;

  int epoll_ = -1;
  void* tag_ = nullptr;
  std::vector<std::pair<int, uint32_t>> watched_;  // in `epoll_`: descriptors, events
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_LINK_WAITS_H_
