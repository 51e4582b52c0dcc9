// SPDX-License-Identifier: Apache-2.0
//
// Number of a gang's pods that fit on a node, and the obstacle if none fits. Pure.
#ifndef RAILHEAD_PLACEMENT_NODE_ROOM_H_
#define RAILHEAD_PLACEMENT_NODE_ROOM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/request.h"

namespace railhead::placement {

// Why a node accepts no pod. The first true value applies, so permanent obstacles precede temporary
// ones.
enum class Obstacle {
  kNone,
  kUnschedulable,
  kTooFewGpus,  // the node has fewer than a pod requests
  kTooFewHcas,
  kDeadRails,  // enough HCAs, but not enough live ones
  kGpusInUse,
  kHcasInUse,
};

struct NodeRoom {
  int pods = 0;
  Obstacle obstacle = Obstacle::kNone;  // kNone exactly if pods > 0
};

// `request` must request GPUs, HCAs or both.
NodeRoom RoomOnNode(const fabric::FabricNode& node, const PlacementRequest& request);

// Converts rails (0 to 63) to bits.
uint64_t RailBits(const std::vector<int>& rails);

// Returns the rails that a pod of a gang gets on the node, as bits. `before`: pods of the gang that
// are on the node already. The first pod gets the first `hcas_per_pod` live rails not known to be
// in use, each other pod the next ones. If these do not suffice, the usage is out of date and the
// first of the other live rails fill up. Pods that share HCAs all get the rails of the first.
uint64_t RailsOnNode(const fabric::FabricNode& node, int hcas_per_pod, int before = 0);

// Returns how many of the pods that fit on the node get the same rails: all if they need no HCAs or
// share them, else only the first.
int RoomForSameRails(const fabric::FabricNode& node, const PlacementRequest& request);

// Describes the obstacle for a message that counts nodes: "unschedulable: taint maintenance".
std::string Describe(Obstacle obstacle, const fabric::FabricNode& node);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_NODE_ROOM_H_
