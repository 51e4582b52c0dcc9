// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_MONOTONIC_H_
#define RAILHEAD_KUBE_MONOTONIC_H_

#include "absl/time/time.h"

namespace railhead::kube {

// A time that never jumps and goes on while the machine is suspended (CLOCK_BOOTTIME). Only
// differences of two on the same machine mean anything. Thread-safe.
absl::Time MonotonicNow();

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_MONOTONIC_H_
