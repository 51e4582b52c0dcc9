// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_RUNTIME_PAGE_H_
#define RAILHEAD_OPERATOR_VERDICT_RUNTIME_PAGE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "operator/verdict/runtime_report.h"

namespace railhead::op::verdict {

// A page has some hundred bytes for each series, and a thousand series for a rank that has done
// every collective in every way. Several pages are in the operator's memory at once.
inline constexpr size_t kMaxPageBytes = 2U << 20U;
inline constexpr size_t kMaxLineBytes = 64U << 10U;
// Of those series that are read: enough for 16 ranks with 64 rails.
inline constexpr size_t kMaxSeries = 4096;

// Reads the metrics page of Railhead's runtime (runtime/metrics/page.cc). The page is not trusted:
// it comes from the user's pod, whose runtime may also be newer than the operator: series, labels
// and words that are not known are no error. What is read of texts is one line of at most 512
// bytes, and valid UTF-8. InvalidArgument names line and cause for a line that is none, a label
// that is missing or out of range, a series that is there twice, and a page that is too large.
absl::StatusOr<RuntimeReport> ParseRuntimePage(absl::string_view page);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_RUNTIME_PAGE_H_
