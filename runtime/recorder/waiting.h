// SPDX-License-Identifier: Apache-2.0
//
// Distinguishes stalled ranks from ranks that wait, directly or through others, for a live rank
// that has not called yet, or just did.
#ifndef RAILHEAD_RUNTIME_RECORDER_WAITING_H_
#define RAILHEAD_RUNTIME_RECORDER_WAITING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/recorder/report.h"

namespace railhead::recorder {

// Returns true if every rank has answered a query, or has left.
bool AllAnswer(const std::vector<Seen>& ranks);

// By rank, after querying all. A rank has just called if its operation is younger than `recent`.
// Ranks that have left will not call. If any other rank does not answer, no rank counts as waiting.
std::vector<bool> WaitsForCallers(const std::vector<Seen>& ranks, absl::Duration recent);

// Report to all ranks after a query.
struct Word {
  std::string text;         // for people
  std::vector<bool> waits;  // of WaitsForCallers
  bool still = false;       // one of them is stalled, and people should know
  bool all_answer = false;  // every rank has answered, or has left
};
// Parses untrusted bytes.
std::string Encode(const Word& word);
absl::StatusOr<Word> ParseWord(absl::string_view bytes);

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_WAITING_H_
