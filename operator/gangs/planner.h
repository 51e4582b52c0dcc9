// SPDX-License-Identifier: Apache-2.0
//
// Placement of gangs, and reasons why others wait. Pure: no I/O, no clock; equal input gives equal
// output.
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
  std::string hostname;     // label of the node
  std::optional<int> rank;  // nullopt: unknown
  std::string master;       // MasterOf its gang

  bool operator==(const Assignment&) const = default;
};

struct Decision {
  enum class State {
    kRunning,     // no pod is gated
    kIncomplete,  // cannot be placed whatever the room
    kWaiting,     // there is not enough room
    kPlaced,      // all of its gated pods
    kTimedOut,    // has waited for its timeout; its policy determines the action
  };
  Gang gang;
  State state = State::kRunning;
  std::vector<Assignment> assignments;  // of kPlaced, in rank order
  std::string placement;                // of kPlaced: name of the decision
  // For users: its place, or why it waits; empty if not requested.
  std::string message;
  std::vector<placement::Reason> reasons;  // why there is not enough room, for kTimedOut also
  std::vector<std::string> notes;          // the message is these and the reasons, if there are any
  bool reserves = false;                   // of kWaiting: nodes are kept free for it
};

// Duration of a reservation: kReservations times `reserve_after`, at least kShortestReservation,
// as `reserve_after` may be 0.
inline constexpr int kReservations = 6;
inline constexpr absl::Duration kShortestReservation = absl::Minutes(10);

struct DecideOptions {
  absl::Time now = absl::UnixEpoch();  // by the clock that stamps objects, the API server's
  // After this wait, room is kept free for a gang; 0: as soon as it does not fit.
  absl::Duration reserve_after = absl::InfiniteDuration();
  std::string reserves = {};  // key of the gang that reserved nodes in the last round, if any
  // Returns true to explain why this gang waits, which is expensive; null: always. Called once per
  // gang without room, in order.
  std::function<bool(const Gang&)> explain = nullptr;
  EmptySeats seats = {};        // room kept for gangs that lost pods
  RefusedNodes failed_on = {};  // where a gang's pods failed, by lineage
  std::set<std::string> put_off =
      {};  // keys of gangs that must not begin now, because others come first
};

// Processes the gangs in their order. A gang that fits takes its room, which later ones no longer
// have. Smaller gangs may overtake one that does not fit, until it has waited for `reserve_after`.
// From then on, later gangs get no node that is kept free for it (reservation.h). Only one
// such gang has reserved nodes: for kReservations times `reserve_after`, then none for the same
// time. Within that time a gang keeps its reservation until it is placed, is gone, or can no longer
// be placed. Namespaces with a gang that could be placed if everything else ended take turns,
// and a namespace without a gang on any node is not blocked by another namespace's reservation.
//
// A gang uses nodes without a place in the topology only if it does not fit on nodes with one, and
// never with a require-level. In a begun gang, each pod goes to the innermost domain of its
// neighbours in rank. If that has no room, the rest goes to the innermost domains that the gang
// uses, first to nodes with the same rails as the others. With a require-level, no pod leaves that
// level's domain.
//
// A pod of a begun gang returns to a node where one of its pods failed only if its neighbours'
// domain has no equally good node. A recreated gang does so only if it would use more domains
// otherwise.
//
// With a prefer-wait, only one domain of the prefer-level is acceptable for that time. If another
// program chose the nodes, they are only checked.
std::vector<Decision> Decide(std::vector<Gang> gangs, const RefusedNodes& refused,
                             ClusterRoom& room, const DecideOptions& options = {});

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_PLANNER_H_
