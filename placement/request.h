// SPDX-License-Identifier: Apache-2.0
//
// What a gang asks of a cluster.
#ifndef RAILHEAD_PLACEMENT_REQUEST_H_
#define RAILHEAD_PLACEMENT_REQUEST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace railhead::placement {

// Between which ranks data flows, which is what the score counts: between neighbours in a ring,
// along a binary tree, or between all.
enum class Pattern { kRing, kTree, kAllToAll };

// A gang of equal pods: all of them are placed, or none.
struct PlacementRequest {
  std::string name;
  int pods = 0;
  int gpus_per_pod = 0;
  int hcas_per_pod = 0;
  std::string require_level;  // all pods in one domain of this level; empty: anywhere
  std::string prefer_level;   // the same, if it can be done
  // Every node gives its pods the same rails as the others, or the gang is not placed: where pods
  // get a part of a node's HCAs, what is free may differ.
  bool same_rails = false;
  // Sizes in GPUs, innermost first, such as {"tp", 8}; empty when none are given.
  std::vector<std::pair<std::string, int>> parallelism;
  Pattern pattern = Pattern::kRing;

  bool operator==(const PlacementRequest&) const = default;
};

// Groups of GPUs that want to be together, but for the outermost, which is the whole gang: with
// {tp, 8}, {pp, 4}, {dp, 16} those of 8 GPUs, in which tp is, and of 32, in which pp is. A group is
// contiguous in the order of ranks. One size for each entry of `parallelism` but the last.
std::vector<int64_t> GroupSizes(const PlacementRequest& request);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_REQUEST_H_
