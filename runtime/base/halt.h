// SPDX-License-Identifier: Apache-2.0
//
// Ends a wait from outside: whoever waits asks again and again why to go on waiting is of no use.
#ifndef RAILHEAD_RUNTIME_BASE_HALT_H_
#define RAILHEAD_RUNTIME_BASE_HALT_H_

#include <algorithm>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"

namespace railhead {

// Returns OK while the wait may go on, else its error. Null: the wait goes on. Called by the thread
// that waits.
using Halt = std::function<absl::Status()>;

// Longest time between two checks: short for people, and nothing for a CPU.
inline constexpr absl::Duration kHaltPace = absl::Milliseconds(20);

inline absl::Status CheckHalt(const Halt& halt) {
  return halt == nullptr ? absl::OkStatus() : halt();
}

// Returns when to check next, at the latest at the deadline.
inline absl::Time NextCheck(const Halt& halt, absl::Time deadline) {
  return halt == nullptr ? deadline : std::min(deadline, MonotonicNow() + kHaltPace);
}

// Sleeps until the time has come, or the wait is ended.
inline absl::Status SleepUntil(absl::Time end, const Halt& halt) {
  while (MonotonicNow() < end) {
    if (absl::Status halted = CheckHalt(halt); !halted.ok()) return halted;
    absl::SleepFor(NextCheck(halt, end) - MonotonicNow());
  }
  return absl::OkStatus();
}

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_HALT_H_
