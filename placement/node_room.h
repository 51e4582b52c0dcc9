// SPDX-License-Identifier: Apache-2.0
//
// How many pods of a gang a node can take, and what is in the way.
#ifndef RAILHEAD_PLACEMENT_NODE_ROOM_H_
#define RAILHEAD_PLACEMENT_NODE_ROOM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/request.h"

namespace railhead::placement {

// Why a node takes no pod: the first of these that is true, so that what waiting cannot mend comes
// before what is in use just now.
enum class Obstacle {
  kNone,
  kUnschedulable,
  kTooFewGpus,  // the node has fewer than a pod asks for
  kTooFewHcas,
  kDeadRails,  // enough HCAs, but not enough that are alive
  kGpusInUse,
  kHcasInUse,
};

struct NodeRoom {
  int pods = 0;
  Obstacle obstacle = Obstacle::kNone;  // kNone if and only if pods > 0
};

// `request` asks for GPUs, HCAs or both.
NodeRoom RoomOnNode(const fabric::FabricNode& node, const PlacementRequest& request);

// Rails from 0 to 63 as bits.
uint64_t RailBits(const std::vector<int>& rails);

// The rails that a pod is given there, as bits: the first that are alive and that nobody is known
// to use, as many as it asks for; where those do not suffice, what is known is out of date, and it
// is given the first of the others, too.
uint64_t RailsOnNode(const fabric::FabricNode& node, int hcas_per_pod);

// The obstacle in words, for a message that counts nodes: "unschedulable: taint maintenance".
std::string Describe(Obstacle obstacle, const fabric::FabricNode& node);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_NODE_ROOM_H_
