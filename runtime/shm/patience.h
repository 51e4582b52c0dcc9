// SPDX-License-Identifier: Apache-2.0
//
// Wait policy of ranks that share memory: spin time, timeout, cancellation.
#ifndef RAILHEAD_RUNTIME_SHM_PATIENCE_H_
#define RAILHEAD_RUNTIME_SHM_PATIENCE_H_

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/alarm.h"
#include "runtime/shm/futex.h"
#include "runtime/shm/spread.h"

namespace railhead::shm {

struct Patience {
  absl::Duration look;                           // spin time before sleeping
  absl::Duration limit;                          // timeout: DeadlineExceeded
  const std::atomic<bool>* cancelled = nullptr;  // Cancelled when it becomes true
  // More ranks than cores: the awaited rank may need this core, so it is yielded between reads.
  // A yield takes a sixth of the time of sleeping and waking.
  bool crowded = false;
  // Called after the limit: true restarts it. Null: the wait ends.
  const std::function<bool()>* go_on = nullptr;
  Spread* spread = nullptr;  // if each rank has a core; null: ranks are not moved

  // Returns true if a wait in which nothing has moved for `still` begins anew, false if it
  // continues. An error ends it: Cancelled, or `late`, which names what is awaited.
  absl::StatusOr<bool> Check(absl::Duration still, absl::FunctionRef<absl::Status()> late) const {
    if (absl::Status failed = Alarm{cancelled}.Check(); !failed.ok()) return failed;
    if (still < limit) return false;
    if (go_on == nullptr || !(*go_on)()) return late();
    return true;
  }
  // Number of reads between two reads of the clock; a yielded core may be away for long.
  int LooksAtOnce() const { return crowded ? 1 : 16; }
  // A rank that has not arrived after this time may be on this core, where it cannot run while this
  // rank spins, even if it last waited on another core.
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
