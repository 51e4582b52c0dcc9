// SPDX-License-Identifier: Apache-2.0
//
// Cancellation of waits: the waiting thread calls a function regularly, which returns an error if
// waiting is futile.
#ifndef RAILHEAD_RUNTIME_BASE_HALT_H_
#define RAILHEAD_RUNTIME_BASE_HALT_H_

#include <algorithm>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"

namespace railhead {

// Returns OK while the wait may continue, else its error. Null: always continue. Called on the
// waiting thread.
using Halt = std::function<absl::Status()>;

// Maximum time between two checks: short for people, negligible for a CPU.
inline constexpr absl::Duration kHaltPace = absl::Milliseconds(20);

inline absl::Status CheckHalt(const Halt& halt) {
  return halt == nullptr ? absl::OkStatus() : halt();
}

// Returns the time of the next check, at most `deadline`.
inline absl::Time NextCheck(const Halt& halt, absl::Time deadline) {
  return halt == nullptr ? deadline : std::min(deadline, MonotonicNow() + kHaltPace);
}

// Sleeps until `end`, or until `halt` returns an error.
inline absl::Status SleepUntil(absl::Time end, const Halt& halt) {
  while (MonotonicNow() < end) {
    if (absl::Status halted = CheckHalt(halt); !halted.ok()) return halted;
    absl::SleepFor(NextCheck(halt, end) - MonotonicNow());
  }
  return absl::OkStatus();
}

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_HALT_H_
