// SPDX-License-Identifier: Apache-2.0
#include "kube/monotonic.h"

#include <ctime>

#include "absl/time/clock.h"

namespace railhead::kube {

absl::Time MonotonicNow() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::TimeFromTimespec(now);
}

std::function<absl::Time()> SteadyTimeOfDay() {
  return [ahead = absl::Now() - MonotonicNow()] { return MonotonicNow() + ahead; };
}

}  // namespace railhead::kube
