// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_GANGS_TURNS_H_
#define RAILHEAD_OPERATOR_GANGS_TURNS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace railhead::op::gangs {

// Which gangs are told in which round why they wait: it takes some milliseconds to find that out
// for one, and there may be hundreds. A round is a call of Take for each gang that waits, in their
// order, and then one of EndRound. Pure: the time comes from outside. Not thread-safe.
class Turns {
 public:
  // At most so many in one round.
  static constexpr size_t kInARound = 4;
  // While there are more, rounds follow each other after this time.
  static constexpr absl::Duration kNextRound = absl::Seconds(1);
  // Each has its next turn after a minute, and where many wait after so long for each of them.
  static constexpr absl::Duration kAtSoonest = absl::Minutes(1);
  static constexpr absl::Duration kForEach = absl::Seconds(1);

  // Whether it is this gang's turn: at once where it is new and there is time for it.
  bool Take(const std::string& gang);
  // Whether it has taken a turn in this round.
  bool HasTaken(const std::string& gang) const { return taken_.contains(gang); }
  // It has taken its turn in vain, and keeps it. Who waits and does not take its turn has had it.
  void InVain(const std::string& gang) { taken_.erase(gang); }
  // `waiting` are all gangs that wait, in their order; others are forgotten. When the next round is
  // wanted; InfiniteFuture: nobody waits.
  absl::Time EndRound(const std::vector<std::string>& waiting, absl::Time now);

 private:
  std::map<std::string, absl::Time> last_;  // turn, of each gang that has had one
  std::set<std::string> due_;               // whose turn it is in this round
  size_t for_new_ = kInARound;              // turns that are left for gangs that are new
  std::set<std::string> taken_;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_TURNS_H_
