// SPDX-License-Identifier: Apache-2.0
//
// Incremental filter for scraped metrics: receives a page in pieces and keeps the relevant lines,
// so that a page of megabytes is never in memory. Used by the HTTP client of the collector.
#ifndef RAILHEAD_OPERATOR_VERDICT_PAGE_LINES_H_
#define RAILHEAD_OPERATOR_VERDICT_PAGE_LINES_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace railhead::op::verdict {

// A page has a few hundred bytes per series, and 1000 series for a rank that ran every collective
// with every algorithm. Most series are not relevant and are dropped.
inline constexpr size_t kMaxPageBytes = 2U << 20U;
inline constexpr size_t kMaxLineBytes = 64U << 10U;
// Limit of relevant lines: enough for 16 ranks with 8 rails, or one with 64.
inline constexpr size_t kMaxKeptBytes = 64U << 10U;

// Returns whether ParseRuntimePage reads the series of this line.
bool IsOfInterest(absl::string_view line);

class PageLines {
 public:
  // Returns InvalidArgument if page, line or relevant lines exceed their limit.
  absl::Status Append(absl::string_view bytes);
  // Returns the lines that were kept; the last may lack its line break.
  std::string Take() &&;

 private:
  absl::Status EndLine();

  size_t seen_ = 0;  // total bytes received
  std::string kept_;
  std::string line_;  // incomplete line
};

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_PAGE_LINES_H_
