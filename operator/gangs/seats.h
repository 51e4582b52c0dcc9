// SPDX-License-Identifier: Apache-2.0
//
// Places of gangs' pods. The room of a pod that is gone is kept until it is recreated. A gang
// avoids nodes where its pod failed, if possible. Used by GangMachine and the planner.
#ifndef RAILHEAD_OPERATOR_GANGS_SEATS_H_
#define RAILHEAD_OPERATOR_GANGS_SEATS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/gangs/gang.h"

namespace railhead::op::gangs {

// Place of a rank in a running gang whose pod is gone.
struct Seat {
  int rank = 0;
  std::string node;

  bool operator==(const Seat&) const = default;
};
using EmptySeats = std::map<std::string, std::vector<Seat>>;  // by the gang's key

// A new leader knows only pods that still exist. Pure; the caller passes the time. Not thread-safe.
class Seats {
 public:
  // Job controllers recreate a pod within minutes, or not at all.
  static constexpr absl::Duration kKeep = absl::Minutes(5);
  static constexpr absl::Duration kAvoid = absl::Minutes(10);

  // `gangs`: all existing gangs.
  void Update(const std::vector<Gang>& gangs, absl::Time now);

  // Returns the empty seats of gangs with running pods; ended gangs need no room.
  const EmptySeats& empty() const { return empty_; }
  // Returns nodes where pods failed, by lineage, since a restarted JobSet is another gang.
  std::map<std::string, std::set<std::string>> FailedOn(absl::Time now) const;
  // Returns when the next seat expires; InfiniteFuture if there is none.
  absl::Time NextEnd() const;

 private:
  struct Taken {
    std::string node;
    std::string uid;
    absl::Time gone = absl::InfiniteFuture();  // time since which the seat is empty
  };
  struct OfGang {
    std::map<int, Taken> by_rank;
    std::set<std::string> given_up;  // uids of pods whose seats expired
  };
  std::map<std::string, OfGang> gangs_;  // by the gang's key
  // End of each node's avoidance, by lineage; kept also while the gang has no pod.
  std::map<std::string, std::map<std::string, absl::Time>> failed_;
  std::set<std::string> seen_failed_;  // uids
  EmptySeats empty_;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_SEATS_H_
