// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_SHM_PATIENCE_H_
#define RAILHEAD_RUNTIME_SHM_PATIENCE_H_

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "runtime/shm/futex.h"
#include "runtime/shm/spread.h"

namespace railhead::shm {

// How to wait.
struct Patience {
  absl::Duration look;                           // before sleeping
  absl::Duration limit;                          // then DeadlineExceeded
  const std::atomic<bool>* cancelled = nullptr;  // when it becomes true: Cancelled
  // There are more ranks than cores: who is waited for may need this one, so it is offered between
  // looks. That takes a sixth of the time of sleeping and waking.
  bool crowded = false;
  // Asked when the limit has passed: true begins it anew. Null: it ends the wait.
  const std::function<bool()>* go_on = nullptr;
  Spread* spread = nullptr;  // where ranks have a core each; null: they stay where they are

  bool GoesOn() const { return go_on != nullptr && (*go_on)(); }
  // How many looks to take between two at the clock; an offered core may be away for long.
  int LooksAtOnce() const { return crowded ? 1 : 16; }
  // Who has not come in so many nanoseconds may have been put on this very core, where it cannot
  // run while this rank looks: also if it was on another one when it last waited.
  void AfterLooks(int64_t waited) const {
    constexpr int64_t kOnAnotherCore = 500;
    constexpr int64_t kMayHaveMoved = 10'000;
    if (crowded || waited <= kOnAnotherCore) return;
    if (spread != nullptr && spread->Part() && waited <= kMayHaveMoved) return;
    sched_yield();
  }
  void BetweenLooks() const {
    if (crowded) {
      sched_yield();
    } else {
      Pause();
    }
  }
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_PATIENCE_H_
