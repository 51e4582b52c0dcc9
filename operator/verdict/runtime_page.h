// SPDX-License-Identifier: Apache-2.0
//
// Parser of the metrics of Railhead's runtime. The text is untrusted: it comes from the user's pod,
// whose runtime may be newer than the operator. Used by PagePoller.
#ifndef RAILHEAD_OPERATOR_VERDICT_RUNTIME_PAGE_H_
#define RAILHEAD_OPERATOR_VERDICT_RUNTIME_PAGE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "operator/verdict/page_lines.h"
#include "operator/verdict/runtime_report.h"

namespace railhead::op::verdict {

// Maximum ranks per process. (A rank has at most fabric::kMaxRails rails.)
inline constexpr size_t kMaxRanks = 64;

// Parses the metrics of Railhead's runtime (runtime/metrics/page.cc). Unknown series, labels and
// words are ignored. Text values are limited to one line of 512 bytes in valid UTF-8. Returns
// InvalidArgument with line and cause for an invalid line, a label that is missing or out of range,
// a duplicate series, a page larger than the limits of PageLines, and too many ranks or rails. If
// PageLines filtered the page, line numbers are those of the lines it kept.
absl::StatusOr<RuntimeReport> ParseRuntimePage(absl::string_view page);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_RUNTIME_PAGE_H_
