// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_GANGS_SEATS_H_
#define RAILHEAD_OPERATOR_GANGS_SEATS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/gangs/gang.h"

namespace railhead::op::gangs {

// Where a rank of a running gang was, whose pod is gone.
struct Seat {
  int rank = 0;
  std::string node;

  bool operator==(const Seat&) const = default;
};
using EmptySeats = std::map<std::string, std::vector<Seat>>;  // by the gang's key

// Where pods of gangs were: the room of one that is gone is kept until it is made again, and where
// one has failed its gang goes only if it must. A leader that begins knows of those alone that are
// still listed. Pure: the time comes from outside. Not thread-safe.
class Seats {
 public:
  // Job controllers make a pod again within minutes, or have given up.
  static constexpr absl::Duration kKeep = absl::Minutes(5);
  static constexpr absl::Duration kAvoid = absl::Minutes(10);

  // All gangs that there are.
  void Update(const std::vector<Gang>& gangs, absl::Time now);

  // Of gangs of which something runs still; what has ended needs no room.
  const EmptySeats& empty() const { return empty_; }
  // Nodes where pods have failed, by the gang's lineage: a JobSet that starts anew is another gang.
  std::map<std::string, std::set<std::string>> FailedOn(absl::Time now) const;
  // When the next seat is given up; InfiniteFuture: there is none.
  absl::Time NextEnd() const;

 private:
  struct Taken {
    std::string node;
    std::string uid;
    absl::Time gone = absl::InfiniteFuture();  // since when nobody is there
  };
  struct OfGang {
    std::map<int, Taken> by_rank;
    std::set<std::string> given_up;  // uids of pods whose seats are kept no more
  };
  std::map<std::string, OfGang> gangs_;  // by the gang's key
  // Until when each node is avoided, by the gang's lineage: also while none of its pods is there.
  std::map<std::string, std::map<std::string, absl::Time>> failed_;
  std::set<std::string> seen_failed_;  // uids
  EmptySeats empty_;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_SEATS_H_
