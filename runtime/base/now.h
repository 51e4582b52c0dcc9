// SPDX-License-Identifier: Apache-2.0
//
// The time of waits, deadlines and ages. It is the machine's monotonic clock: setting the time of
// day, by hand or by NTP, neither ends a wait nor lengthens it. It has no meaning for people, and
// none in another machine; it is the same in all processes of this one.
#ifndef RAILHEAD_RUNTIME_BASE_NOW_H_
#define RAILHEAD_RUNTIME_BASE_NOW_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"

namespace railhead {

// An absl::Time that counts from when the machine started; never to be compared with absl::Now.
inline absl::Time MonotonicNow() { return absl::FromUnixNanos(SystemTime::Steady()); }

// For people: when that moment was, by the time of day as it is set now.
inline absl::Time TimeOfDay(absl::Time monotonic) {
  return absl::Now() - (MonotonicNow() - monotonic);
}

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_NOW_H_
