// SPDX-License-Identifier: Apache-2.0
//
// Pre-flight check of the environment of a job: all ranks meet and connect as for a job, inspect
// their rails, and exchange messages over each of them. Leaves nothing behind. Used by the C API.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_PREFLIGHT_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_PREFLIGHT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/setup/joining.h"
#include "runtime/preflight/findings.h"

namespace railhead::comm {

// All ranks must call it; returns the same findings on all. Problems that would degrade a job or
// prevent its start are findings, not errors. An error means that the ranks could not meet, or that
// one was lost.
absl::StatusOr<std::vector<preflight::RankFinding>> RunPreflight(CommunicatorOptions options);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_PREFLIGHT_H_
