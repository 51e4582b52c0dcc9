// SPDX-License-Identifier: Apache-2.0
//
// Whether what a job would run on is as it should be: all ranks meet and connect as a job does,
// look at their rails, and ask each other over every one of them. Nothing of it stays.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_PREFLIGHT_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_PREFLIGHT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/setup/joining.h"
#include "runtime/preflight/findings.h"

namespace railhead::comm {

// Called by all ranks; returns the same findings on all. What a job would only be degraded by, or
// would not start with, is found and not failed by: an error means that the ranks could not meet,
// or lost one of them.
absl::StatusOr<std::vector<preflight::Finding>> RunPreflight(CommunicatorOptions options);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_PREFLIGHT_H_
