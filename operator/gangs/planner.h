// SPDX-License-Identifier: Apache-2.0
//
// Which gangs go where, and why the others wait. Pure: no I/O, no clock; the same question always
// has the same answer.
#ifndef RAILHEAD_OPERATOR_GANGS_PLANNER_H_
#define RAILHEAD_OPERATOR_GANGS_PLANNER_H_

#include <string>
#include <vector>

#include "operator/gangs/cluster_room.h"
#include "operator/gangs/gang.h"

namespace railhead::op::gangs {

struct Assignment {
  PodValue pod;
  std::string node;
  std::string hostname;  // the node's label
  int rank = 0;

  bool operator==(const Assignment&) const = default;
};

struct Decision {
  enum class State {
    kRunning,     // nothing of it is gated
    kIncomplete,  // it cannot be placed as it is, whatever the room
    kWaiting,     // there is no room
    kPlaced,      // of its gated pods, all
  };
  Gang gang;
  State state = State::kRunning;
  std::vector<Assignment> assignments;  // of kPlaced, in the order of ranks
  std::string placement;                // of kPlaced: what this decision is called
  std::string message;                  // for people: where it is placed, or why it waits
};

// Looks at the gangs in their order, and gives each that fits its room, which the later ones do not
// have any more. A gang that fits nowhere keeps no room free, and so may be overtaken by smaller
// ones.
//
// A gang uses nodes without a place in the topology only if it does not fit on those with one, and
// never with a require-level. Of one that has begun, the rest goes into the innermost domains that
// it is in and that have the room; with a require-level nowhere outside of that level's.
std::vector<Decision> Decide(std::vector<Gang> gangs, const RefusedNodes& refused,
                             ClusterRoom& room);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_PLANNER_H_
