// SPDX-License-Identifier: Apache-2.0
//
// Tells a rank that nothing is wrong with from one that stands still: it waits, be it through
// others, for a rank that lives and has not called yet, or has only just done so.
#ifndef RAILHEAD_RUNTIME_RECORDER_WAITING_H_
#define RAILHEAD_RUNTIME_RECORDER_WAITING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/recorder/report.h"

namespace railhead::recorder {

// By rank, of ranks that have all been asked. A rank has just called if its operation runs for less
// than `recent`. Nothing is known, and no rank excused, when one of them does not answer.
std::vector<bool> WaitsForCallers(const std::vector<Seen>& ranks, absl::Duration recent);

// What all ranks are told when they have been asked where they are.
struct Word {
  std::string text;         // for people
  std::vector<bool> waits;  // of WaitsForCallers
  bool still = false;       // whether one of them stands still, and people should know
};
// Trusts nothing that it parses.
std::string Encode(const Word& word);
absl::StatusOr<Word> ParseWord(absl::string_view bytes);

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_WAITING_H_
