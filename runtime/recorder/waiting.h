// SPDX-License-Identifier: Apache-2.0
//
// Distinguishes stalled ranks from ranks that wait, directly or through others, for a live rank
// that has not called yet, or just did.
#ifndef RAILHEAD_RUNTIME_RECORDER_WAITING_H_
#define RAILHEAD_RUNTIME_RECORDER_WAITING_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/recorder/report.h"

namespace railhead::recorder {

// By rank, after querying all. A rank has just called if its operation is younger than `recent`.
// Ranks that have left will not call. A rank that does not answer is where it last was; if that is
// not known, it has not called. If it has not answered for `recent`, no rank counts as waiting.
std::vector<bool> WaitsForCallers(const std::vector<Seen>& ranks, absl::Duration recent);

// Report to all ranks after a query.
struct Word {
  std::string text;                        // for people
  std::vector<bool> waits;                 // of WaitsForCallers
  bool still = false;                      // one of them is stalled; the text describes it
  bool log = false;                        // people should know now
  std::vector<std::pair<int, int>> stuck;  // of StuckPairs
};
// Parses untrusted bytes.
std::string Encode(const Word& word);
absl::StatusOr<Word> ParseWord(absl::string_view bytes);

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_WAITING_H_
