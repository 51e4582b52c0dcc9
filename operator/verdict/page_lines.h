// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_PAGE_LINES_H_
#define RAILHEAD_OPERATOR_VERDICT_PAGE_LINES_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace railhead::op::verdict {

// A page has some hundred bytes for each series, and a thousand series for a rank that has done
// every collective in every way. Most of them are of no interest here, and are not kept.
inline constexpr size_t kMaxPageBytes = 2U << 20U;
inline constexpr size_t kMaxLineBytes = 64U << 10U;
// Of the lines that are of interest: enough for 16 ranks with 8 rails, or for one with 64.
inline constexpr size_t kMaxKeptBytes = 64U << 10U;

// Whether ParseRuntimePage reads the series of this line.
bool IsOfInterest(absl::string_view line);

// Takes a page in pieces, as they come, and keeps the lines that are of interest: a page of
// megabytes is never in memory.
class PageLines {
 public:
  // InvalidArgument when page, line or what is of interest are larger than is allowed.
  absl::Status Append(absl::string_view bytes);
  // The lines so far, of which the last may be without a line break.
  std::string Take() &&;

 private:
  absl::Status EndLine();

  size_t seen_ = 0;  // bytes
  std::string kept_;
  std::string line_;  // that has not ended yet
};

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_PAGE_LINES_H_
