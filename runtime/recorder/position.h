// SPDX-License-Identifier: Apache-2.0
//
// How far a rank is, and whether it stands still.
#ifndef RAILHEAD_RUNTIME_RECORDER_POSITION_H_
#define RAILHEAD_RUNTIME_RECORDER_POSITION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/traffic.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/collective.h"
#include "runtime/recorder/flight_recorder.h"

namespace railhead::recorder {

// Where the last bytes went or came from.
struct Way {
  bool received = false;
  int peer = -1;  // -1: not known
  std::string rail;
};

// A rank's last operation.
struct Doing {
  uint64_t number = 0;
  collectives::Collective collective = collectives::Collective::kAllReduce;
  collectives::Algorithm algorithm = collectives::Algorithm::kRing;
  collectives::Call call;
  uint64_t bytes = 0;
  State state = State::kRunning;
  Traffic moved;
  absl::Duration age;      // since the start of one that runs, else since its end
  absl::Duration still;    // of one that runs: for how long nothing has moved
  std::optional<Way> way;  // if something has
  // Of transfers that run: ranks that they come from or go to, the first of them.
  std::vector<int> awaited;
};
inline constexpr size_t kMostAwaited = 8;

// A rank's last collectives: what it has called, the newest first. Their numbers follow each other.
struct Recent {
  static constexpr size_t kMost = 4;
  uint64_t newest = 0;  // the number of the first
  std::vector<collectives::Call> calls;
};
// The oldest first.
Recent RecentOf(const std::vector<Operation>& operations);

// What a rank says of itself when it is asked.
struct Position {
  uint64_t collectives = 0;  // begun
  Recent recent;
  std::optional<Doing> last;
};

// Trusts nothing that it parses. An encoded position has at most kPositionLimit bytes.
inline constexpr size_t kPositionLimit = 256;
std::string Encode(const Position& position);
absl::StatusOr<Position> ParsePosition(absl::string_view bytes);

// Follows one rank from look to look. Knows no clock: it is told what is to be seen.
class Stillness {
 public:
  // An operation stands still when nothing has moved for `patience`. `rails` by their places.
  Stillness(absl::Duration patience, std::vector<std::string> rails)
      : patience_(patience), rails_(std::move(rails)) {}

  // Returns whether it is time to say that the operation stands still: after the patience, and then
  // each time it has done so for twice as long.
  bool Look(absl::Time now, const std::optional<Operation>& last, const std::vector<Flow>& flows);

  // What is to be said of the rank, whose last operation this is; `awaited` matters for transfers.
  Position At(absl::Time now, const std::optional<Operation>& last, uint64_t collectives,
              const std::vector<Flow>& flows, const std::vector<int>& awaited = {}) const;

 private:
  const absl::Duration patience_;
  const std::vector<std::string> rails_;
  absl::Time looked_ = absl::InfinitePast();
  std::vector<Flow> flows_;  // at the last look
  uint64_t sequence_ = 0;    // the operation that ran then
  absl::Time since_;         // nothing has moved in it
  absl::Duration next_;      // say so after this time
  std::optional<Way> way_;
};

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_POSITION_H_
