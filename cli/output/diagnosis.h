// SPDX-License-Identifier: Apache-2.0
//
// Exit codes and the length of output of commands that diagnose: `railhead doctor` and `railhead
// nccl-log`.
#ifndef RAILHEAD_CLI_OUTPUT_DIAGNOSIS_H_
#define RAILHEAD_CLI_OUTPUT_DIAGNOSIS_H_

#include <cstddef>

#include "absl/types/span.h"
#include "base/finding.h"

namespace railhead::cli {

inline constexpr int kAllPass = 0;
inline constexpr int kWarned = 1;
inline constexpr int kFailed = 2;  // also on bad input, and if there is nothing to diagnose

// Maximum number of findings of a check in a table.
inline constexpr size_t kMostOfACheck = 20;

inline int ExitCodeOf(absl::Span<const Finding> findings) {
  const Severity worst = Worst(findings);
  return worst == Severity::kFail ? kFailed : worst == Severity::kWarn ? kWarned : kAllPass;
}

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_OUTPUT_DIAGNOSIS_H_
