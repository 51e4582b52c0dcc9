// SPDX-License-Identifier: Apache-2.0
#include "kube/monotonic.h"

#include <ctime>

namespace railhead::kube {

absl::Time MonotonicNow() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace railhead::kube
