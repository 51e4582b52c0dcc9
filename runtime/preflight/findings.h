// SPDX-License-Identifier: Apache-2.0
//
// From the facts of all ranks to what is well, and what to repair. Pure.
//
// Facts that are alike on several ranks make one finding, so that a large job that is well has few,
// and a node that is not stands out.
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_FINDINGS_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_FINDINGS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/preflight/facts.h"

namespace railhead::preflight {

enum class Verdict {
  kOk,
  kNote,  // not looked at: it cannot be seen from here, or does not apply
  kWarn,  // it works, but not as it should
  kFail,  // a job would lose a rail by it, or not get what it was given
};

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string check;                    // "rate"; one word for scripts
  std::optional<rails::RailName> rail;  // whose; nothing: the whole rank's or job's
  std::vector<int> ranks;               // that it is about, ascending
  std::string where;                    // the same for people, with pods and nodes
  std::string value;                    // what was seen
  std::string fix;                      // "" where nothing is to be done
};

// What the ranks have agreed on.
struct Job {
  std::string transport;        // "verbs" or "tcp"
  std::string degraded_reason;  // "" if they have got what they wanted
};

// All findings; `ranks` by rank.
std::vector<Finding> FindAll(const Job& job, absl::Span<const RankFacts> ranks);

// A rank as most of them are: the rate and MTU of each rail. Of equally many, the first one's.
RankFacts UsualOf(absl::Span<const RankFacts> ranks);

// What a rank should say at start of itself: a line for each warning about the rails that it has,
// beside those that are usual.
std::vector<std::string> WarningsOf(const RankFacts& own, const RankFacts& usual);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_FINDINGS_H_
