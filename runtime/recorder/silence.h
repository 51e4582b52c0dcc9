// SPDX-License-Identifier: Apache-2.0
//
// Ranks that do not answer queries, as the rank that queries them sees it. Used by HangReporter.
//
// A rank is unresponsive from the first query that it has not answered since its last answer; an
// answer that comes after its query's end counts. So a rank that answers late, because its machine
// is busy, is alive, and a stopped one is unresponsive from the next query on. The time counts only
// while queries follow each other: if there was no query for half the timeout, or the querying
// process did not run itself, it begins anew.
//
// Pure: the caller passes the time. Not thread-safe.
#ifndef RAILHEAD_RUNTIME_RECORDER_SILENCE_H_
#define RAILHEAD_RUNTIME_RECORDER_SILENCE_H_

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "runtime/recorder/report.h"

namespace railhead::recorder {

class Silence {
 public:
  // `timeout` of operations.
  explicit Silence(absl::Duration timeout) : timeout_(timeout) {}

  // Takes the answers, by rank, to a query that began at `asked`. Adds to each rank that has not
  // answered for how long, and its last known position. One that is unresponsive for less than
  // `moment` counts as having answered, if its position is known.
  void Note(absl::Time asked, absl::Time now, absl::Duration moment, std::vector<Seen>& ranks);
  // Returns true if a rank has been unresponsive for the timeout, and an operation or transfer of
  // another rank has made no progress for as long.
  bool Overdue(absl::Time now) const;
  // Another rank queries: what this one has seen is obsolete.
  void Clear();

 private:
  struct Known {
    absl::Time silent_since = absl::InfiniteFuture();
    std::optional<Position> position;
  };

  const absl::Duration timeout_;
  absl::Time noted_ = absl::InfinitePast();            // the last answers
  absl::Time silent_since_ = absl::InfiniteFuture();   // the rank unresponsive for longest
  absl::Time waiting_since_ = absl::InfiniteFuture();  // the rank that has waited longest
  std::vector<Known> ranks_;
};

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_SILENCE_H_
