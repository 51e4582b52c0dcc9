// SPDX-License-Identifier: Apache-2.0
//
// Evaluates the facts of all ranks: what works, and what to repair. Pure.
//
// Equal facts of several ranks become one finding, so that a healthy large job has few, and a
// faulty node stands out.
#ifndef RAILHEAD_RUNTIME_PREFLIGHT_FINDINGS_H_
#define RAILHEAD_RUNTIME_PREFLIGHT_FINDINGS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/finding.h"
#include "runtime/preflight/facts.h"

namespace railhead::preflight {

// A finding about ranks: its object names them with their pods and nodes.
struct RankFinding : Finding {
  std::optional<rails::RailName> rail;  // nullopt: the whole rank or job
  std::vector<int> ranks;               // concerned, ascending
};

// The ranks' agreement.
struct Job {
  std::string transport;        // "verbs" or "tcp"
  std::string degraded_reason;  // "" if not degraded
};

// Returns all findings; `ranks` by rank.
std::vector<RankFinding> FindAll(const Job& job, absl::Span<const RankFacts> ranks);

// Returns a typical rank: the most frequent rate and MTU of each rail; the first among equals.
RankFacts UsualOf(absl::Span<const RankFacts> ranks);

// Returns this rank's warnings at start: one line for each warning about its rails, compared with a
// typical rank.
std::vector<std::string> WarningsOf(const RankFacts& own, const RankFacts& usual);

}  // namespace railhead::preflight

#endif  // RAILHEAD_RUNTIME_PREFLIGHT_FINDINGS_H_
