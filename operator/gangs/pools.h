// SPDX-License-Identifier: Apache-2.0
//
// Messages about pools of nodes that may grow. An autoscaler ignores pods with a scheduling gate,
// so it adds no nodes for a waiting gang. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_POOLS_H_
#define RAILHEAD_OPERATOR_GANGS_POOLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "operator/gangs/node_tree.h"
#include "operator/gangs/reservation.h"
#include "operator/objects/label_set.h"

namespace railhead::op::gangs {

// Returns the node's pool, from labels of node provisioners: "eks.amazonaws.com/nodegroup=p5";
// empty if unknown.
std::string PoolOf(const LabelSet& labels);

// Returns, for a waiting gang, how many more nodes of which pool would have room for the `missing`
// pods; or, if no node accepts such pods, the advice to grow another pool, which may be empty.
// Empty if neither is known. It is not known here if a pool may grow.
std::string AboutPools(const NodeTree& tree, const std::vector<NodeOutlook>& outlook,
                       int64_t missing);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_POOLS_H_
