// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_MONOTONIC_H_
#define RAILHEAD_KUBE_MONOTONIC_H_

#include "absl/time/time.h"

namespace railhead::kube {

// Returns a time that never jumps and includes suspension of the machine (CLOCK_BOOTTIME). Only
// differences on one machine are meaningful. Thread-safe.
absl::Time MonotonicNow();

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_MONOTONIC_H_
