// SPDX-License-Identifier: Apache-2.0
//
// A descriptor that wakes a thread which sleeps on it (eventfd).
#ifndef RAILHEAD_RUNTIME_NET_EVENT_H_
#define RAILHEAD_RUNTIME_NET_EVENT_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::net {

// Thread-safe once opened. Forked children do not get it.
class Event {
 public:
  // Not open.
  Event() = default;
  static absl::StatusOr<Event> Open() {
    Event event;
    event.fd_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event.fd_.valid()) return ErrnoError("eventfd", errno);
    event.fd_.KeepFromChildren();
    return event;
  }

  // Readable from Signal until Clear.
  int fd() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }

  void Signal() const {
    const uint64_t one = 1;
    // Fails only if it is readable already.
    [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof one);
  }
  void Clear() const {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(fd_.get(), &count, sizeof count);
  }

 private:
  Fd fd_;
};

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_EVENT_H_
