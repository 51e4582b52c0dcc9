// SPDX-License-Identifier: Apache-2.0
//
// Which gangs go where, and why the others wait. Pure: no I/O, no clock; the same question always
// has the same answer.
#ifndef RAILHEAD_OPERATOR_GANGS_PLANNER_H_
#define RAILHEAD_OPERATOR_GANGS_PLANNER_H_

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/gangs/cluster_room.h"
#include "operator/gangs/gang.h"
#include "operator/gangs/seats.h"
#include "placement/reasons.h"

namespace railhead::op::gangs {

struct Assignment {
  PodValue pod;
  std::string node;
  std::string hostname;     // the node's label
  std::optional<int> rank;  // nothing: unknown
  std::string master;       // MasterOf its gang

  bool operator==(const Assignment&) const = default;
};

struct Decision {
  enum class State {
    kRunning,     // nothing of it is gated
    kIncomplete,  // it cannot be placed as it is, whatever the room
    kWaiting,     // there is no room
    kPlaced,      // of its gated pods, all
    kTimedOut,    // it has waited for as long as it wants to; its policy says what becomes of it
  };
  Gang gang;
  State state = State::kRunning;
  std::vector<Assignment> assignments;  // of kPlaced, in the order of ranks
  std::string placement;                // of kPlaced: what this decision is called
  // For people: where it is placed, or why it waits; that is empty where nobody wants to know.
  std::string message;
  std::vector<placement::Reason> reasons;  // of kWaiting, what the message is made of
};

inline constexpr int kReservations = 6;

struct DecideOptions {
  absl::Time now = absl::UnixEpoch();  // of day
  // A gang that has waited for so long has room kept free for it.
  absl::Duration reserve_after = absl::InfiniteDuration();
  // Whether anybody wants to know why this gang waits, which is much work; none: always. Called
  // once for each gang without room, in their order.
  std::function<bool(const Gang&)> explain = nullptr;
  EmptySeats seats = {};        // room that is kept for gangs that have lost pods
  RefusedNodes failed_on = {};  // where pods of a gang have failed, by its lineage
  std::set<std::string> put_off =
      {};  // keys of gangs that cannot be begun: others come before them
};

// Looks at the gangs in their order, and gives each that fits its room, which the later ones do not
// have any more. A gang that fits nowhere may be overtaken by smaller ones, until it has waited for
// `reserve_after`: from then on those after it in the order get no node that is kept free for it
// (reservation.h), and only one such gang has any. Nobody has nodes idle for ever by a gang that
// never fits: room is kept free for kReservations times `reserve_after`, and then for as long for
// nobody; namespaces take turns; and a namespace without a gang on any node is not kept away by
// another one's.
//
// A gang uses nodes without a place in the topology only if it does not fit on those with one, and
// never with a require-level. Of one that has begun, each pod goes into the innermost domain of its
// neighbours in rank; where these have no room, the rest goes into the innermost domains that the
// gang is in, and there first to nodes that give the same rails as those of the others; with a
// require-level nowhere outside of that level's.
//
// A pod whose gang has begun goes back where one of it has failed only if its neighbours' domain
// has no other node that is as good; a gang that is made anew, only if it would be in more domains
// elsewhere.
//
// With a prefer-wait, for so long nothing but one domain of its prefer-level will do. Where
// somebody else has chosen the nodes, they are only looked at.
std::vector<Decision> Decide(std::vector<Gang> gangs, const RefusedNodes& refused,
                             ClusterRoom& room, const DecideOptions& options = {});

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_PLANNER_H_
