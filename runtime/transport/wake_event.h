// SPDX-License-Identifier: Apache-2.0
//
// WakeEvent: by which other threads wake a thread that sleeps on its rails, for an arriving
// connection, a failure of the job, or the address of a rank.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_WAKE_EVENT_H_
#define RAILHEAD_RUNTIME_TRANSPORT_WAKE_EVENT_H_

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/net/event.h"

namespace railhead::transport {

class WakeEvent {
 public:
  // Opens it, unless it is open. Signals before that have no effect. For one thread at a time.
  absl::Status Open() {
    if (event_.valid()) return absl::OkStatus();
    absl::StatusOr<net::Event> event = net::Event::Open();
    if (!event.ok()) return event.status();
    event_ = *std::move(event);
    open_.store(true, std::memory_order_release);
    return absl::OkStatus();
  }

  // Readable from Signal until Clear.
  int fd() const { return event_.fd(); }
  void Clear() const { event_.Clear(); }

  // Thread-safe.
  void Signal() const {
    if (open_.load(std::memory_order_acquire)) event_.Signal();
  }

 private:
  net::Event event_;
  std::atomic<bool> open_{false};
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_WAKE_EVENT_H_
