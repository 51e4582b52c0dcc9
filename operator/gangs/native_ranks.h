// SPDX-License-Identifier: Apache-2.0
//
// Ranks of pods that kube-scheduler places with their PodGroup: in the order of the fabric, as for
// other gangs. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_NATIVE_RANKS_H_
#define RAILHEAD_OPERATOR_GANGS_NATIVE_RANKS_H_

#include <vector>

#include "operator/gangs/cluster_room.h"
#include "operator/gangs/gang.h"
#include "operator/gangs/planner.h"

namespace railhead::op::gangs {

// Returns the gang's pods that need a rank, with it. Empty until as many pods have nodes as the
// gang has ranks. Pods keep their ranks; a recreated pod gets a free one.
std::vector<Assignment> RanksByPlace(const Gang& gang, const ClusterRoom& room);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_NATIVE_RANKS_H_
