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

// A rank's transfers (rhIsend, rhIrecv) that make no progress; see transfer_stillness.h.
struct StillTransfers {
  static constexpr size_t kMostPeers = 24;
  // Ranks for which something is true. If there are more, `ranks` has some of them.
  struct Peers {
    std::vector<int> ranks;
    uint32_t all = 0;

    bool operator==(const Peers&) const = default;
  };

  // The time without progress of the transfers that have waited longest; zero without transfers.
  absl::Duration still;
  bool from_any = false;  // a receive from any rank has matched no message for the timeout
  // Peers with which nothing has moved for the timeout: messages under way, or only transfers that
  // the peer may not have posted.
  Peers under_way;
  Peers unfinished;

  bool operator==(const StillTransfers&) const = default;
};

// A rank's status reply.
struct Position {
  uint64_t collectives = 0;  // begun
  Recent recent;
  std::optional<Doing> last;
  StillTransfers transfers;
};

// Parses untrusted bytes. An encoded position has at most kPositionLimit bytes.
inline constexpr size_t kPositionLimit = 480;
std::string Encode(const Position& position);
absl::StatusOr<Position> ParsePosition(absl::string_view bytes);

// Stall detector of one rank. Pure: the caller passes all observations.
class Stillness {
 public:
  // The first argument: time without traffic after which an operation is stalled. If the caller
  // does not look for `asleep`, the process itself did not run. `rails` by index.
  Stillness(absl::Duration patience, absl::Duration asleep, std::vector<std::string> rails)
      : patience_(patience), asleep_(asleep), rails_(std::move(rails)) {}

  // Returns true if the operation is stalled.
  bool Look(absl::Time now, const std::optional<Operation>& last, const std::vector<Flow>& flows);

  // Returns the rank's status, whose last operation this is; `awaited` is used for transfers.
  Position At(absl::Time now, const std::optional<Operation>& last, uint64_t collectives,
              const std::vector<Flow>& flows, const std::vector<int>& awaited = {}) const;

 private:
  const absl::Duration patience_;
  const absl::Duration asleep_;
  const std::vector<std::string> rails_;
  absl::Time looked_ = absl::InfinitePast();
  std::vector<Flow> flows_;  // at the last Look
  uint64_t sequence_ = 0;    // operation then running
  absl::Time since_;         // start of the time without traffic
  std::optional<Way> way_;
};

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_POSITION_H_
