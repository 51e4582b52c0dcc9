// SPDX-License-Identifier: Apache-2.0
//
// Monotonic time of waits, deadlines and ages: changes of the time of day, by hand or NTP, do not
// affect it. It is meaningless to people and on other machines, and equal in all processes of one
// machine.
#ifndef RAILHEAD_RUNTIME_BASE_NOW_H_
#define RAILHEAD_RUNTIME_BASE_NOW_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"

namespace railhead {

// An absl::Time since the machine's start; do not compare it with absl::Now.
inline absl::Time MonotonicNow() { return absl::FromUnixNanos(SystemTime::Steady()); }

// Returns the time of day of a monotonic time, by the current clock, for people.
inline absl::Time TimeOfDay(absl::Time monotonic) {
  return absl::Now() - (MonotonicNow() - monotonic);
}

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_NOW_H_
