// SPDX-License-Identifier: Apache-2.0
#include "placement/node_room.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/model/fabric_model.h"
#include "fabric/rail_limit.h"
#include "placement/request.h"

namespace railhead::placement {

NodeRoom RoomOnNode(const fabric::FabricNode& node, const PlacementRequest& request) {
  const int gpus = request.gpus_per_pod;
  const int hcas = request.hcas_per_pod;
  const int alive = node.hcas - static_cast<int>(node.dead_rails.size());
  const int free_gpus = node.gpus - node.used_gpus;
  // HCAs in use are counted as alive: a pod on a dead rail soon fails.
  const int free_hcas = std::max(0, alive - node.used_hcas);
  if (!node.unschedulable.empty()) return {0, Obstacle::kUnschedulable};
  if (node.gpus < gpus) return {0, Obstacle::kTooFewGpus};
  if (node.hcas < hcas) return {0, Obstacle::kTooFewHcas};
  if (alive < hcas) return {0, Obstacle::kDeadRails};
  if (free_gpus < gpus) return {0, Obstacle::kGpusInUse};
  if (free_hcas < hcas) return {0, Obstacle::kHcasInUse};
  if (gpus == 0 && hcas == 0) return {0, Obstacle::kTooFewHcas};  // it requests nothing
  if (gpus == 0) return {free_hcas / hcas, Obstacle::kNone};
  if (hcas == 0) return {free_gpus / gpus, Obstacle::kNone};
  return {std::min(free_gpus / gpus, free_hcas / hcas), Obstacle::kNone};
}

uint64_t RailBits(const std::vector<int>& rails) {
  uint64_t bits = 0;
  for (const int rail : rails) bits |= uint64_t{1} << static_cast<unsigned>(rail);
  return bits;
}

uint64_t RailsOnNode(const fabric::FabricNode& node, int hcas_per_pod, int before) {
  const uint64_t dead = RailBits(node.dead_rails);
  const int held = node.shared_hcas ? 0 : before * hcas_per_pod;
  uint64_t seen = 0;
  uint64_t rails = 0;
  int given = 0;
  // A node without known rails still has HCAs.
  for (const uint64_t taken : {RailBits(node.used_rails) | dead, dead}) {
    for (int rail = 0; rail <= fabric::kHighestRail && given < held + hcas_per_pod; ++rail) {
      const uint64_t bit = uint64_t{1} << static_cast<unsigned>(rail);
      if (((taken | seen) & bit) != 0) continue;
      seen |= bit;
      if (given++ >= held) rails |= bit;
    }
  }
  return rails;
}

int RoomForSameRails(const fabric::FabricNode& node, const PlacementRequest& request) {
  const int pods = RoomOnNode(node, request).pods;
  return request.hcas_per_pod == 0 || node.shared_hcas ? pods : std::min(pods, 1);
}

std::string Describe(Obstacle obstacle, const fabric::FabricNode& node) {
  switch (obstacle) {
    case Obstacle::kUnschedulable:
      return absl::StrCat("unschedulable: ", node.unschedulable);
    case Obstacle::kTooFewGpus:
      return "fewer GPUs than a pod requests";
    case Obstacle::kTooFewHcas:
      return "fewer HCAs than a pod requests";
    case Obstacle::kDeadRails:
      return "dead rails: fewer HCAs alive than a pod requests";
    case Obstacle::kGpusInUse:
      return "GPUs in use";
    case Obstacle::kHcasInUse:
      return "HCAs in use";
    case Obstacle::kNone:
      break;
  }
  return "";
}

}  // namespace railhead::placement
