// SPDX-License-Identifier: Apache-2.0
//
// Ranks of pods that kube-scheduler has placed by itself, with their PodGroup: in the order of the
// fabric, as of those that we place. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_NATIVE_RANKS_H_
#define RAILHEAD_OPERATOR_GANGS_NATIVE_RANKS_H_

#include <vector>

#include "operator/gangs/cluster_room.h"
#include "operator/gangs/gang.h"
#include "operator/gangs/planner.h"

namespace railhead::op::gangs {

// The pods of the gang that want a rank, with it. Nothing until as many have nodes as the gang has
// ranks. Ranks that pods have, they keep: one that is made again gets one that is free.
std::vector<Assignment> RanksByPlace(const Gang& gang, const ClusterRoom& room);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_NATIVE_RANKS_H_
