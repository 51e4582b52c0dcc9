// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_RUNTIME_PAGE_H_
#define RAILHEAD_OPERATOR_VERDICT_RUNTIME_PAGE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "operator/verdict/page_lines.h"
#include "operator/verdict/runtime_report.h"

namespace railhead::op::verdict {

// No process has more ranks. (No rank has more than fabric::kMaxRails rails.)
inline constexpr size_t kMaxRanks = 64;

// Reads the metrics page of Railhead's runtime (runtime/metrics/page.cc). The page is not trusted:
// it comes from the user's pod, whose runtime may also be newer than the operator: series, labels
// and words that are not known are no error. What is read of texts is one line of at most 512
// bytes, and valid UTF-8. InvalidArgument names line and cause for a line that is none, a label
// that is missing or out of range, a series that is there twice, and a page that is larger than
// PageLines allows, or has too many ranks or rails. Of a page that PageLines has taken up the lines
// are those that it has kept.
absl::StatusOr<RuntimeReport> ParseRuntimePage(absl::string_view page);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_RUNTIME_PAGE_H_
