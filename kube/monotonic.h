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

// Returns a clock that starts at the current time of day and then advances by MonotonicNow: setting
// the time of day does not change it. For ages of timestamps of other machines. Thread-safe.
std::function<absl::Time()> SteadyTimeOfDay();

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_MONOTONIC_H_
