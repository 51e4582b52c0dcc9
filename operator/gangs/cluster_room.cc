// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/cluster_room.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/gangs/names.h"
#include "operator/gangs/node_rules.h"
#include "operator/placement/node_room.h"

namespace railhead::op::gangs {
namespace {

int64_t AmountOf(const Resources& resources, const std::string& name) {
  const auto found = resources.find(name);
  return found == resources.end() ? 0 : found->second;
}

struct Room {
  int64_t pods = std::numeric_limits<int64_t>::max();
  std::string scarce;  // of what there is least
};

Room RoomFor(const Resources& free, const Resources& requests) {
  Room room;
  for (const auto& [name, amount] : requests) {
    if (amount <= 0) continue;
    const int64_t pods = AmountOf(free, name) / amount;
    if (pods < room.pods) room = {pods, name};
  }
  return room;
}

// Free as much as `pods` pods need, and no more: the room of a node is what the scarcest of all
// resources leaves, of which the model knows but two.
int UsedFor(int all, int64_t pods, int per_pod) {
  return all - static_cast<int>(std::min<int64_t>(all, pods * per_pod));
}

}  // namespace

ClusterRoom::ClusterRoom(const NodeTree* tree, const std::vector<PodValue>& pods,
                         const Promises& promises)
    : tree_(tree), used_(tree->nodes.size()) {
  for (size_t i = 0; i < tree->nodes.size(); ++i) {
    indices_[tree->nodes[i]->seen.name] = i;
    const std::string& hostname = tree->nodes[i]->hostname;
    if (!hostname.empty()) hostnames_[hostname] = tree->nodes[i]->seen.name;
  }
  for (const PodValue& pod : pods) {
    std::string node = pod->node;
    if (const auto promise = promises.find(pod->uid); node.empty() && promise != promises.end()) {
      node = promise->second.node;
    }
    if (node.empty() && pod->member && pod->member->released) {
      const auto hostname = pod->member->rules.selector.find(kHostname);
      if (hostname != pod->member->rules.selector.end()) {
        const auto known = hostnames_.find(hostname->second);
        if (known != hostnames_.end()) node = known->second;
      }
    }
    if (const std::optional<size_t> index = IndexOf(node)) Add(pod->requests, used_[*index]);
  }
}

std::optional<size_t> ClusterRoom::IndexOf(const std::string& node) const {
  const auto found = indices_.find(node);
  if (found == indices_.end()) return std::nullopt;
  return found->second;
}

void ClusterRoom::Take(size_t node, const Resources& requests) { Add(requests, used_[node]); }

fabric::FabricModel ClusterRoom::ModelFor(const Gang& gang, const std::set<std::string>& refused,
                                          const std::function<std::string(size_t)>& outside) const {
  const StoredPod& pod = *gang.gated.front();
  const placement::PlacementRequest request = RequestOf(gang);
  std::set<std::string> own;  // nodes that have a pod of the gang
  if (pod.member->one_on_a_node) {
    for (const Released& other : gang.released) own.insert(other.node);
  }
  fabric::FabricModel model = tree_->model;
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const StoredNode& stored = *tree_->nodes[i];
    fabric::FabricNode& node = model.nodes[i];
    node.unschedulable = outside(i);
    if (node.unschedulable.empty() && stored.cordoned) node.unschedulable = "cordoned";
    if (node.unschedulable.empty() && !stored.ready) node.unschedulable = "not ready";
    if (node.unschedulable.empty() && stored.hostname.empty()) {
      node.unschedulable = absl::StrCat("no label ", kHostname);
    }
    if (node.unschedulable.empty()) {
      node.unschedulable = WhyNot(pod.member->rules, node.name, stored.labels, stored.taints);
    }
    if (node.unschedulable.empty() && refused.contains(node.name)) {
      node.unschedulable = "the scheduler refused a pod of this gang there a moment ago";
    }
    if (node.unschedulable.empty() && own.contains(node.name)) {
      node.unschedulable = "a pod of this gang has the ports of the node";
    }
    Resources free;
    for (const auto& [name, amount] : stored.allocatable) {
      free[name] = std::max<int64_t>(0, amount - AmountOf(used_[i], name));
    }
    Room room = RoomFor(free, pod.requests);
    if (pod.member->one_on_a_node) room.pods = std::min<int64_t>(room.pods, 1);

    const auto dead = static_cast<int>(node.dead_rails.size());
    const int offered = HcasIn(stored.allocatable);
    // More than rails: they are shared, and a pod that asks for one does not take it from others.
    if (offered > node.hcas) node.hcas = offered + dead;
    const int alive = std::max(0, node.hcas - dead);
    node.gpus = GpusIn(stored.allocatable);
    node.used_gpus = std::max(0, node.gpus - GpusIn(free));
    node.used_hcas = std::max(0, alive - HcasIn(free));
    if (room.pods > 0) {
      if (request.gpus_per_pod > 0) {
        node.used_gpus = UsedFor(node.gpus, room.pods, request.gpus_per_pod);
      }
      if (request.hcas_per_pod > 0) {
        node.used_hcas = UsedFor(alive, room.pods, request.hcas_per_pod);
      }
    } else if (placement::RoomOnNode(node, request).pods > 0) {
      node.unschedulable =
          AmountOf(stored.allocatable, room.scarce) < AmountOf(pod.requests, room.scarce)
              ? absl::StrCat("less ", room.scarce, " than a pod asks for")
              : absl::StrCat(room.scarce, " in use");
    }
  }
  return model;
}

}  // namespace railhead::op::gangs
