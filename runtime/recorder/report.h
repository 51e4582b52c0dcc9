// SPDX-License-Identifier: Apache-2.0
//
// Hang report for people, from the positions of all ranks. Pure. Used by HangReporter.
#ifndef RAILHEAD_RUNTIME_RECORDER_REPORT_H_
#define RAILHEAD_RUNTIME_RECORDER_REPORT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/recorder/position.h"

namespace railhead::recorder {

// Knowledge about one rank.
struct Seen {
  enum class How { kAnswered, kSilent, kNotAsked, kLeft };
  std::string name;  // "rank 5 (pod c on node n2)"
  How how = How::kNotAsked;
  Position position;  // of its last answer
  // For how long it has not answered; zero: it has just answered, or has left.
  absl::Duration silence = absl::ZeroDuration();
};

// Returns a report of all positions for people: first ranks that do not answer, then those that
// have left, then transfers that cannot be delivered, then ranks that are behind, then a summary of
// those that wait. At most kReportLimit
// bytes, for any number of ranks.
inline constexpr size_t kReportLimit = 2000;
std::string Report(const std::vector<Seen>& ranks);

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_REPORT_H_
