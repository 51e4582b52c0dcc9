// SPDX-License-Identifier: Apache-2.0
//
// std::condition_variable with deadlines of MonotonicNow. The standard's timed waits follow the
// time of day with C libraries older than glibc 2.30.
#ifndef RAILHEAD_RUNTIME_BASE_CONDITION_H_
#define RAILHEAD_RUNTIME_BASE_CONDITION_H_

#include <pthread.h>

#include <algorithm>
#include <ctime>
#include <mutex>
#include <utility>

#include "absl/time/time.h"
#include "runtime/base/now.h"

namespace railhead {

class Condition {
 public:
  Condition() {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition_, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  ~Condition() { pthread_cond_destroy(&condition_); }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  void NotifyAll() { pthread_cond_broadcast(&condition_); }

  // Waits until `done`, or the deadline. Returns done().
  template <class Done>
  bool WaitUntil(std::unique_lock<std::mutex>& lock, absl::Time deadline, Done done) {
    // Waits in steps of at most a day: not every time fits into a timespec.
    while (!done()) {
      const absl::Time now = MonotonicNow();
      if (now >= deadline) return false;
      const timespec until = absl::ToTimespec(std::min(deadline, now + absl::Hours(24)));
      pthread_cond_timedwait(&condition_, lock.mutex()->native_handle(), &until);
    }
    return true;
  }
  template <class Done>
  bool WaitFor(std::unique_lock<std::mutex>& lock, absl::Duration longest, Done done) {
    return WaitUntil(lock, MonotonicNow() + longest, std::move(done));
  }

 private:
  pthread_cond_t condition_;
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_CONDITION_H_
