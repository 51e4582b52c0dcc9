// SPDX-License-Identifier: Apache-2.0
//
// Turns of gangs to report why they wait: computing that takes milliseconds per gang, and there may
// be hundreds. Used by GangEvents.
#ifndef RAILHEAD_OPERATOR_GANGS_TURNS_H_
#define RAILHEAD_OPERATOR_GANGS_TURNS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace railhead::op::gangs {

// A round is one call of Take for each waiting gang, in order, then EndRound. Pure; the caller
// passes the time. Not thread-safe.
class Turns {
 public:
  // Maximum turns per round.
  static constexpr size_t kInARound = 4;
  // Interval of rounds while more gangs are due.
  static constexpr absl::Duration kNextRound = absl::Seconds(1);
  // Interval of a gang's turns: at least kAtSoonest, or kForEach per waiting gang.
  static constexpr absl::Duration kAtSoonest = absl::Minutes(1);
  static constexpr absl::Duration kForEach = absl::Seconds(1);

  // Returns whether it is this gang's turn; immediate for a new gang if the round has turns left.
  bool Take(const std::string& gang);
  // Returns whether it took a turn in this round.
  bool HasTaken(const std::string& gang) const { return taken_.contains(gang); }
  // Ends the round. `waiting`: all waiting gangs, in order; others are forgotten. A gang that waits
  // and skips its turn loses it. Returns the time of the next round; InfiniteFuture if no gang
  // waits.
  absl::Time EndRound(const std::vector<std::string>& waiting, absl::Time now);

 private:
  std::map<std::string, absl::Time> last_;  // last turn of each gang that had one
  std::set<std::string> due_;               // gangs whose turn it is in this round
  size_t for_new_ = kInARound;              // turns left for new gangs
  std::set<std::string> taken_;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_TURNS_H_
