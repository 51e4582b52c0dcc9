// SPDX-License-Identifier: Apache-2.0
//
// Position of a rank in its operations, and detection of stalls. Used by the hang detector
// (comm/communicator/hang_reporter.h).
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

// Path of the last bytes moved.
struct Way {
  bool received = false;
  int peer = -1;  // -1: unknown
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
  absl::Duration age;      // since the start of a running one, else since its end
  absl::Duration still;    // of a running one: time without any traffic
  std::optional<Way> way;  // of the last traffic
  // For running transfers: ranks they come from or go to, the first kMostAwaited of them.
  std::vector<int> awaited;
};
inline constexpr size_t kMostAwaited = 8;

// A rank's last collectives, newest first, with consecutive numbers.
struct Recent {
  static constexpr size_t kMost = 4;
  uint64_t newest = 0;  // number of the newest
  std::vector<collectives::Call> calls;
};
// `operations` are oldest first.
Recent RecentOf(const std::vector<Operation>& operations);

// A rank's status reply.
struct Position {
  uint64_t collectives = 0;  // begun
  Recent recent;
  std::optional<Doing> last;
};

// Parses untrusted bytes. An encoded position has at most kPositionLimit bytes.
inline constexpr size_t kPositionLimit = 256;
std::string Encode(const Position& position);
absl::StatusOr<Position> ParsePosition(absl::string_view bytes);

// Stall detector of one rank. Pure: the caller passes all observations.
class Stillness {
 public:
  // An operation is stalled after `patience` without traffic. `rails` by index.
  Stillness(absl::Duration patience, std::vector<std::string> rails)
      : patience_(patience), rails_(std::move(rails)) {}

  // Returns true if it is time to report that the operation is stalled: after the patience, and
  // then each time the stall has doubled.
  bool Look(absl::Time now, const std::optional<Operation>& last, const std::vector<Flow>& flows);

  // Returns the rank's status, whose last operation this is; `awaited` is used for transfers.
  Position At(absl::Time now, const std::optional<Operation>& last, uint64_t collectives,
              const std::vector<Flow>& flows, const std::vector<int>& awaited = {}) const;

 private:
  const absl::Duration patience_;
  const std::vector<std::string> rails_;
  absl::Time looked_ = absl::InfinitePast();
  std::vector<Flow> flows_;  // at the last Look
  uint64_t sequence_ = 0;    // operation then running
  absl::Time since_;         // start of the time without traffic
  absl::Duration next_;      // report after this time
  std::optional<Way> way_;
};

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_POSITION_H_
