// SPDX-License-Identifier: Apache-2.0
//
// Placement request of a gang. Values only.
#ifndef RAILHEAD_PLACEMENT_REQUEST_H_
#define RAILHEAD_PLACEMENT_REQUEST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace railhead::placement {

// Communication pattern that the score counts: between neighbours in a ring, along a binary tree,
// or between all ranks.
enum class Pattern { kRing, kTree, kAllToAll };

// A gang of identical pods. Either all are placed or none.
struct PlacementRequest {
  std::string name;
  int pods = 0;
  int gpus_per_pod = 0;
  int hcas_per_pod = 0;
  std::string require_level;  // all pods in one domain of this level; empty: anywhere
  std::string prefer_level;   // likewise, but only if possible
  // If true, all pods must get the same rails, else the gang is not placed. Matters if pods use
  // part of a node's HCAs: nodes may have different HCAs free, and pods of one node get different
  // ones.
  bool same_rails = false;
  // Sizes in GPUs, innermost first, such as {"tp", 8}; empty if not given.
  std::vector<std::pair<std::string, int>> parallelism;
  Pattern pattern = Pattern::kRing;

  bool operator==(const PlacementRequest&) const = default;
};

// Returns the sizes in GPUs of groups to keep together, without the outermost, which is the whole
// gang. With {tp, 8}, {pp, 4}, {dp, 16}: 8 (contains tp) and 32 (contains pp). A group is
// contiguous in the order of ranks. One size per entry of `parallelism` except the last.
std::vector<int64_t> GroupSizes(const PlacementRequest& request);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_REQUEST_H_
