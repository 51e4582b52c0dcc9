// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_RECORDER_REPORT_H_
#define RAILHEAD_RUNTIME_RECORDER_REPORT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/recorder/position.h"

namespace railhead::recorder {

// What is known of one rank.
struct Seen {
  enum class How { kAnswered, kSilent, kNotAsked };
  std::string name;  // "rank 5 (pod c on node n2)"
  How how = How::kNotAsked;
  Position position;  // if it has answered
};

// Who is where, for people: first those that do not answer, then those that are behind, and the
// many that wait for them in a few words. At most kReportLimit bytes, however many ranks.
inline constexpr size_t kReportLimit = 2000;
std::string Report(const std::vector<Seen>& ranks);

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_REPORT_H_
