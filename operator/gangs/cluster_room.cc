// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/cluster_room.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/gangs/names.h"
#include "operator/placement/node_room.h"

namespace railhead::op::gangs {
namespace {

// Of a cluster's gangs few ask for something else than the others. A shape of 16,384 nodes is some
// megabytes.
constexpr size_t kMostShapes = 8;

int64_t AmountOf(const Resources& resources, const std::string& name) {
  const auto found = resources.find(name);
  return found == resources.end() ? 0 : found->second;
}

struct Room {
  int64_t pods = std::numeric_limits<int64_t>::max();
  std::string scarce;  // of what there is least
};

int64_t FreeOf(const Resources& all, const Resources& used, const std::string& name) {
  return std::max<int64_t>(0, AmountOf(all, name) - AmountOf(used, name));
}

Room RoomIn(const Resources& all, const Resources& used, const Resources& requests) {
  Room room;
  for (const auto& [name, amount] : requests) {
    if (amount <= 0) continue;
    const int64_t pods = FreeOf(all, used, name) / amount;
    if (pods < room.pods) room = {pods, name};
  }
  return room;
}

// Which rails are in use where pods hold `count` HCAs: as the agent says, and of what it does not
// say yet the first that are free, as it gives those first. All that it says is out of date where
// it says more.
std::vector<int> RailsInUse(const fabric::FabricNode& node, const std::vector<int>& told, int rails,
                            int count) {
  std::vector<int> used;
  const auto is_in = [](const std::vector<int>& list, int rail) {
    return std::binary_search(list.begin(), list.end(), rail);
  };
  const auto alive = std::count_if(told.begin(), told.end(), [&](int rail) {
    return rail < rails && !is_in(node.dead_rails, rail);
  });
  const bool is_true = alive <= count;
  auto more = count - (is_true ? static_cast<int>(alive) : 0);
  for (int rail = 0; rail < rails; ++rail) {
    if (is_in(node.dead_rails, rail)) continue;
    if (is_true && is_in(told, rail)) {
      used.push_back(rail);
    } else if (more > 0) {
      used.push_back(rail);
      --more;
    }
  }
  return used;
}

// Free as much as `pods` pods need, and no more: the room of a node is what the scarcest of all
// resources leaves, of which the model knows but two.
int UsedFor(int all, int64_t pods, int per_pod) {
  return all - static_cast<int>(std::min<int64_t>(all, pods * per_pod));
}

}  // namespace

ClusterRoom::ClusterRoom(const NodeTree* tree)
    : tree_(tree),
      neighbours_(tree),
      used_(tree->nodes.size()),
      staying_(tree->nodes.size()),
      changed_(tree->nodes.size()) {
  for (size_t i = 0; i < tree->nodes.size(); ++i) {
    indices_[tree->nodes[i]->seen.name] = i;
    const std::string& hostname = tree->nodes[i]->hostname;
    if (!hostname.empty()) hostnames_[hostname] = tree->nodes[i]->seen.name;
  }
}

std::string ClusterRoom::NodeOf(const StoredPod& pod, const Promises& promises) const {
  if (!pod.node.empty()) return pod.node;
  if (const auto promise = promises.find(pod.uid); promise != promises.end()) {
    return promise->second.node;
  }
  if (!pod.member || !pod.member->released) return "";
  const auto hostname = pod.member->rules.selector.find(kHostname);
  if (hostname == pod.member->rules.selector.end()) return "";
  const auto known = hostnames_.find(hostname->second);
  return known == hostnames_.end() ? "" : known->second;
}

void ClusterRoom::Update(const std::vector<PodValue>& pods, const Promises& promises) {
  std::vector<Resources> used(used_.size());
  std::vector<Resources> staying(used_.size());
  neighbours_.Clear();
  for (const PodValue& pod : pods) {
    const std::optional<size_t> node = IndexOf(NodeOf(*pod, promises));
    if (!node) continue;
    Add(pod->requests, used[*node]);
    neighbours_.Add(*node, pod);
    if (HcasIn(pod->requests) == 0 && GpusIn(pod->requests) == 0) {
      Add(pod->requests, staying[*node]);
    }
  }
  staying_ = std::move(staying);
  ++changes_;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i] != used_[i]) changed_[i] = changes_;
  }
  used_ = std::move(used);
}

std::optional<size_t> ClusterRoom::IndexOf(const std::string& node) const {
  const auto found = indices_.find(node);
  if (found == indices_.end()) return std::nullopt;
  return found->second;
}

void ClusterRoom::Take(size_t node, const PodValue& pod) {
  Add(pod->requests, used_[node]);
  neighbours_.Add(node, pod);
  changed_[node] = ++changes_;
}

void ClusterRoom::GiveBack(size_t node, const PodValue& pod) {
  Subtract(pod->requests, used_[node]);
  neighbours_.Remove(node, pod);
  changed_[node] = ++changes_;
}

fabric::FabricNode ClusterRoom::Describe(const Shape& shape, size_t index,
                                         const Resources& used) const {
  const StoredNode& stored = *tree_->nodes[index];
  fabric::FabricNode node = tree_->model.nodes[index];
  if (stored.cordoned) {
    node.unschedulable = "cordoned";
  } else if (!stored.ready) {
    node.unschedulable = "not ready";
  } else if (stored.hostname.empty()) {
    node.unschedulable = absl::StrCat("no label ", kHostname);
  } else {
    node.unschedulable = WhyNot(shape.rules, node.name, stored.labels, stored.taints);
  }
  Room room = RoomIn(stored.allocatable, used, shape.requests);
  if (shape.one_on_a_node) room.pods = std::min<int64_t>(room.pods, 1);

  const auto dead = static_cast<int>(node.dead_rails.size());
  const int offered = HcasIn(stored.allocatable);
  // More than rails: they are shared, and a pod that asks for one does not take it from others.
  if (offered > node.hcas) node.hcas = offered + dead;
  const int alive = std::max(0, node.hcas - dead);
  if (offered <= alive) {
    node.used_rails =
        RailsInUse(node, stored.used_rails, tree_->model.rails, std::min(HcasIn(used), alive));
  }
  node.gpus = GpusIn(stored.allocatable);
  if (room.pods > 0) {
    if (shape.request.gpus_per_pod > 0) {
      node.used_gpus = UsedFor(node.gpus, room.pods, shape.request.gpus_per_pod);
    }
    if (shape.request.hcas_per_pod > 0) {
      node.used_hcas = UsedFor(alive, room.pods, shape.request.hcas_per_pod);
    }
    return node;
  }
  Resources free;
  for (const auto& [name, amount] : stored.allocatable) {
    free[name] = FreeOf(stored.allocatable, used, name);
  }
  node.used_gpus = std::max(0, node.gpus - GpusIn(free));
  node.used_hcas = std::max(0, alive - HcasIn(free));
  if (placement::RoomOnNode(node, shape.request).pods > 0) {
    node.unschedulable =
        AmountOf(stored.allocatable, room.scarce) < AmountOf(shape.requests, room.scarce)
            ? absl::StrCat("less ", room.scarce, " than a pod asks for")
            : absl::StrCat(room.scarce, " in use");
  }
  return node;
}

ClusterRoom::Shape& ClusterRoom::ShapeOf(const Gang& gang) {
  const StoredPod& pod = *gang.gated.front();
  auto found = std::find_if(shapes_.begin(), shapes_.end(), [&](const auto& shape) {
    return shape->requests == pod.requests && shape->rules == pod.member->rules &&
           shape->one_on_a_node == pod.member->one_on_a_node;
  });
  if (found == shapes_.end()) {
    if (shapes_.size() >= kMostShapes) {
      shapes_.erase(
          std::min_element(shapes_.begin(), shapes_.end(),
                           [](const auto& a, const auto& b) { return a->used_at < b->used_at; }));
    }
    auto shape = std::make_unique<Shape>();
    shape->requests = pod.requests;
    shape->rules = pod.member->rules;
    shape->one_on_a_node = pod.member->one_on_a_node;
    shape->request.gpus_per_pod = GpusIn(pod.requests);
    shape->request.hcas_per_pod = HcasIn(pod.requests);
    shape->model = tree_->model;
    shape->room.resize(tree_->nodes.size());
    for (size_t i = 0; i < shape->room.size(); ++i) {
      shape->model.nodes[i] = Describe(*shape, i, used_[i]);
      shape->room[i] = placement::RoomOnNode(shape->model.nodes[i], shape->request).pods;
      shape->all_room += shape->room[i];
    }
    shape->as_of = changes_;
    shapes_.push_back(std::move(shape));
    found = shapes_.end() - 1;
  }
  Shape& shape = **found;
  shape.used_at = ++uses_;
  for (size_t i = 0; shape.as_of < changes_ && i < changed_.size(); ++i) {
    if (changed_[i] <= shape.as_of) continue;
    shape.all_room -= shape.room[i];
    shape.model.nodes[i] = Describe(shape, i, used_[i]);
    shape.room[i] = placement::RoomOnNode(shape.model.nodes[i], shape.request).pods;
    shape.all_room += shape.room[i];
  }
  shape.as_of = changes_;
  return shape;
}

const fabric::FabricModel& ClusterRoom::ModelFor(const Gang& gang,
                                                 const std::set<std::string>& refused,
                                                 const Outside& outside) {
  const fabric::FabricModel& all = ShapeOf(gang).model;
  const Exclusions others = neighbours_.For(*gang.gated.front());
  std::set<std::string> own;  // nodes that have a pod of the gang
  if (gang.gated.front()->member->one_on_a_node) {
    for (const Released& other : gang.released) own.insert(other.node);
  }
  if (refused.empty() && own.empty() && others.empty() && outside == nullptr) return all;
  part_ = all;
  for (size_t i = 0; i < part_.nodes.size(); ++i) {
    fabric::FabricNode& node = part_.nodes[i];
    if (std::string why = outside == nullptr ? "" : outside(i); !why.empty()) {
      node.unschedulable = std::move(why);
    } else if (!node.unschedulable.empty()) {
      continue;
    } else if (refused.contains(node.name)) {
      node.unschedulable = "the scheduler refused a pod of this gang there a moment ago";
    } else if (own.contains(node.name)) {
      node.unschedulable = "a pod of this gang is there, and wants no other one";
    } else if (const auto other = others.find(i); other != others.end()) {
      node.unschedulable = other->second;
    }
  }
  return part_;
}

int64_t ClusterRoom::RoomFor(const Gang& gang) { return ShapeOf(gang).all_room; }

std::vector<int> ClusterRoom::RoomWhenFree(const Gang& gang) {
  const Shape& shape = ShapeOf(gang);
  std::vector<int> room(tree_->nodes.size());
  for (size_t i = 0; i < room.size(); ++i) {
    room[i] = placement::RoomOnNode(Describe(shape, i, staying_[i]), shape.request).pods;
  }
  return room;
}

}  // namespace railhead::op::gangs
