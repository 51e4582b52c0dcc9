// SPDX-License-Identifier: Apache-2.0
//
// Parts of the cluster in which the planner tries to place a gang, as the nodes that each excludes.
// Used by the planner during one round. Not thread-safe.
#ifndef RAILHEAD_OPERATOR_GANGS_AREAS_H_
#define RAILHEAD_OPERATOR_GANGS_AREAS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/gangs/cluster_room.h"
#include "placement/request.h"

namespace railhead::op::gangs {

// Returns the nodes that either excludes.
Outside Both(Outside a, const Outside& b);

class Areas {
 public:
  using FailedOn = std::map<std::string, std::set<std::string>>;  // nodes by a gang's lineage

  // Both must outlive the areas.
  Areas(ClusterRoom* room, const FailedOn* failed_on)
      : room_(room), tree_(room->tree()), failed_on_(failed_on) {}

  // Returns the areas to try in this order; the last one contains all nodes that may be used. A
  // gang that runs in part is tried near its pods first.
  std::vector<Outside> Of(const Gang& gang, const placement::PlacementRequest& request);

  // Returns the nodes where a pod of the gang has failed.
  Outside FailedThere(const Gang& gang) const;
  // Returns the nodes that do not give the same rails as a node that the gang is on.
  Outside OtherRails(const Gang& gang, const placement::PlacementRequest& request);
  // Returns the nodes for which `is_one(index)` is true; empty if there are none.
  template <typename IsOne>
  Outside Excluding(std::string why, IsOne is_one) const;

 private:
  Outside WithinDomainsOf(const std::set<size_t>& at, size_t level) const;

  ClusterRoom* const room_;
  const NodeTree& tree_;
  const FailedOn* const failed_on_;
  Outside unplaced_;  // nodes without a place; empty until needed
};

template <typename IsOne>
Outside Areas::Excluding(std::string why, IsOne is_one) const {
  auto exclusion = std::make_shared<Exclusion>();
  exclusion->why = std::move(why);
  exclusion->nodes.resize(room_->tree().nodes.size());
  bool any = false;
  for (size_t node = 0; node < exclusion->nodes.size(); ++node) {
    const bool excluded = is_one(node);
    exclusion->nodes[node] = excluded ? 1 : 0;
    any = any || excluded;
  }
  if (!any) return {};
  return {std::move(exclusion)};
}

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_AREAS_H_
