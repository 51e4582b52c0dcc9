// SPDX-License-Identifier: Apache-2.0
//
// WakeEvent: lets other threads wake a thread that sleeps on its rails, for an arriving connection,
// a failure of the job, or the address of a rank. It needs no descriptor per event: one descriptor
// of the process, which is always readable, is in the thread's epoll while the event is
// signalled.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_WAKE_EVENT_H_
#define RAILHEAD_RUNTIME_TRANSPORT_WAKE_EVENT_H_

#include <sys/epoll.h>

#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/one_per_process.h"
#include "runtime/net/event.h"

namespace railhead::transport {

// Thread-safe.
class WakeEvent {
 public:
  // From now on, `epoll` has this event with `tag` as its data, from Signal until Clear; -1: none
  // has. Replaces the last call. An epoll can have one event, and must stay open until the next
  // call.
  absl::Status WakeBy(int epoll, void* tag) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (readable_ == nullptr && epoll >= 0) {
      absl::StatusOr<std::shared_ptr<net::Event>> readable = Readable();
      if (!readable.ok()) return readable.status();
      readable_ = *std::move(readable);
    }
    if (signalled_) Control(EPOLL_CTL_DEL);
    epoll_ = epoll;
    tag_ = tag;
    if (signalled_) Control(EPOLL_CTL_ADD);
    return absl::OkStatus();
  }

  void Signal() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!std::exchange(signalled_, true)) Control(EPOLL_CTL_ADD);
  }
  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(signalled_, false)) Control(EPOLL_CTL_DEL);
  }

 private:
  static absl::StatusOr<std::shared_ptr<net::Event>> Readable() {
    static OnePerProcess<net::Event> events;
    return events.Get([]() -> absl::StatusOr<std::shared_ptr<net::Event>> {
      absl::StatusOr<net::Event> event = net::Event::Open();
      if (!event.ok()) return event.status();
      event->Signal();
      return std::make_shared<net::Event>(*std::move(event));
    });
  }

  void Control(int operation) const {
    if (epoll_ < 0) return;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = tag_;
    // Fails only without memory; who sleeps looks again later.
    ::epoll_ctl(epoll_, operation, readable_->fd(), &event);
  }

  std::mutex mutex_;
  std::shared_ptr<net::Event> readable_;
  int epoll_ = -1;
  void* tag_ = nullptr;
  bool signalled_ = false;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_WAKE_EVENT_H_
