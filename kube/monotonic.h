// SPDX-License-Identifier: Apache-2.0
//
// Clocks that continue evenly if the time of day is set. Used for deadlines, ages and backoff by
// the agent and the operator.
#ifndef RAILHEAD_KUBE_MONOTONIC_H_
#define RAILHEAD_KUBE_MONOTONIC_H_

#include <functional>

#include "absl/time/time.h"

namespace railhead::kube {

// Returns a time that never jumps and includes suspension of the machine (CLOCK_BOOTTIME). Only
// differences on one machine are meaningful. Thread-safe.
absl::Time MonotonicNow();

// Returns a clock that shows the time of day as it is now and then goes on by itself: setting the
// time of day changes it no more. For ages of what another machine has stamped. Thread-safe.
std::function<absl::Time()> SteadyTimeOfDay();

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_MONOTONIC_H_
