// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/cluster.h"

#include <algorithm>
#include <utility>

namespace railhead::op::verdict {

Cluster::Cluster(Nodes nodes, std::map<std::string, ProfileFacts> profiles,
                 ClusterSettings settings)
    : nodes_(std::move(nodes)), profiles_(std::move(profiles)), settings_(settings) {
  for (const auto& [name, node] : nodes_) {
    may_grow_ = may_grow_ || node->of_a_pool;
    for (const auto& [resource, count] : node->allocatable) {
      Offer& offer = offers_[resource];
      offer.most_healthy = std::max(offer.most_healthy, count);
    }
    for (const auto& [resource, count] : node->capacity) {
      has_devices_ = has_devices_ || count > 0;
      Offer& offer = offers_[resource];
      if (count <= offer.most) continue;
      offer.most = count;
      offer.roomiest = name;
    }
  }
}

const NodeFacts* Cluster::FindNode(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second.get();
}

const ProfileFacts* Cluster::FindProfile(const std::string& name) const {
  const auto found = profiles_.find(name);
  return found == profiles_.end() ? nullptr : &found->second;
}

const Offer* Cluster::FindOffer(const std::string& resource) const {
  const auto found = offers_.find(resource);
  return found == offers_.end() ? nullptr : &found->second;
}

}  // namespace railhead::op::verdict
