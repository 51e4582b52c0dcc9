// SPDX-License-Identifier: Apache-2.0
//
// Diagnosis of a job by the log of its NCCL. Pure.
#ifndef RAILHEAD_CLI_NCCL_LOG_LOG_RULES_H_
#define RAILHEAD_CLI_NCCL_LOG_LOG_RULES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "base/finding.h"
#include "cli/nccl_log/nccl_log.h"

namespace railhead::cli {

// A check and what it means, for help texts.
struct NcclCheck {
  absl::string_view name;
  absl::string_view about;
};
std::vector<NcclCheck> NcclChecks();

// Returns a finding for each check and cause, of all processes that have it together, in the order
// of NcclChecks(); a pass if there is none; a note if the log has too little to tell.
std::vector<Finding> Diagnose(const NcclLog& log);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_NCCL_LOG_LOG_RULES_H_
