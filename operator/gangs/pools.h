// SPDX-License-Identifier: Apache-2.0
//
// What people are told of pools of nodes that may grow: an autoscaler does not look at pods that
// have a scheduling gate, so it makes no nodes for a gang that waits. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_POOLS_H_
#define RAILHEAD_OPERATOR_GANGS_POOLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "operator/gangs/node_tree.h"
#include "operator/gangs/reservation.h"
#include "operator/label_selector.h"

namespace railhead::op::gangs {

// Which pool a node is of, by the labels of those who make nodes: "eks.amazonaws.com/nodegroup=p5";
// empty: nobody says.
std::string PoolOf(const Labels& labels);

// For a gang that waits: how many more nodes of which pool would have room for the `missing` pods;
// or, where no node of the cluster would take such pods, that a pool which has none yet must be
// made to grow by somebody. Empty: neither is known. Whether a pool may grow nobody here knows.
std::string AboutPools(const NodeTree& tree, const std::vector<NodeOutlook>& outlook,
                       int64_t missing);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_POOLS_H_
