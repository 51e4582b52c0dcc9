// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/cluster_room.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/objects/names.h"
#include "placement/node_room.h"

namespace railhead::op::gangs {
namespace {

// Few gangs of a cluster differ in their requests. The counts of a shape take a few bytes for each
// node, a model some hundreds.
constexpr size_t kMostShapes = 128;
constexpr size_t kMostModels = 8;

constexpr char kRefused[] = "the scheduler recently rejected a pod of this gang there";
constexpr char kOwn[] = "a pod of this gang is there and excludes others (anti-affinity)";

// Returns the rails in use on a node whose pods hold `count` HCAs: those that the agent reports,
// then the lowest free ones, as it allocates these first. If it reports more than `count`, its
// whole report is outdated.
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

ClusterRoom::ClusterRoom(const NodeTree* tree, RdmaResources rdma)
    : tree_(tree),
      rdma_(std::move(rdma)),
      domains_(fabric::DomainsOfNodes(tree->model)),
      facts_(tree->nodes.size()),
      neighbours_(tree),
      table_(tree->nodes, rdma_),
      staying_(tree->nodes, rdma_) {
  for (size_t i = 0; i < tree->nodes.size(); ++i) {
    indices_[tree->nodes[i]->name] = i;
    const std::string& hostname = tree->nodes[i]->hostname;
    if (!hostname.empty()) hostnames_[hostname] = tree->nodes[i]->name;
    facts_[i] = FactsOf(i);
  }
}

ClusterRoom::Facts ClusterRoom::FactsOf(size_t node) const {
  const StoredNode& stored = *tree_->nodes[node];
  const fabric::FabricNode& in_model = tree_->model.nodes[node];
  const auto dead = static_cast<int>(in_model.dead_rails.size());
  const int offered = HcasIn(stored.allocatable, rdma_);
  Facts facts;
  facts.usable = !stored.cordoned && stored.ready && !stored.hostname.empty();
  facts.gpus = GpusIn(stored.allocatable);
  // More than rails: they are shared, and a pod that requests one does not take it from others.
  facts.hcas = offered > in_model.hcas ? offered + dead : in_model.hcas;
  facts.alive = facts.hcas - dead;
  facts.shared = offered > std::max(0, facts.alive);
  facts.more_than_rails = offered > in_model.hcas;
  return facts;
}

bool ClusterRoom::Refresh(size_t node) {
  const StoredNode& stored = *tree_->nodes[node];
  if (!table_.SetAllocatable(node, stored.allocatable) ||
      !staying_.SetAllocatable(node, stored.allocatable)) {
    return false;
  }
  facts_[node] = FactsOf(node);
  for (const auto& shape : shapes_) {
    Allowed& allowed = *shape->allowed;
    allowed.nodes[node] =
        WhyNot(allowed.rules, stored.name, stored.labels, stored.taints).empty() ? 1 : 0;
  }
  changes_.push_back(node);
  return true;
}

std::string ClusterRoom::NodeOf(const StoredPod& pod, const Promises& promises) const {
  if (!pod.node.empty()) return pod.node;
  if (const auto promise = promises.find(pod.uid); promise != promises.end()) {
    return promise->second.node;
  }
  if (!pod.member || !pod.member->released) return "";
  const auto hostname = pod.member->rules->selector.find(kHostname);
  if (hostname == pod.member->rules->selector.end()) return "";
  const auto known = hostnames_.find(hostname->second);
  return known == hostnames_.end() ? "" : known->second;
}

void ClusterRoom::Put(const Held& held) {
  table_.Add(held.node, held.amounts);
  if (held.stays) staying_.Add(held.node, held.amounts);
  neighbours_.Add(held.node, held.pod);
  changes_.push_back(held.node);
}

void ClusterRoom::Drop(const Held& held) {
  table_.Remove(held.node, held.amounts);
  if (held.stays) staying_.Remove(held.node, held.amounts);
  neighbours_.Remove(held.node, held.pod);
  changes_.push_back(held.node);
}

void ClusterRoom::Update(const std::vector<PodValue>& pods, const Promises& promises) {
  EndTrials();
  ForgetChanges();
  ++round_;
  for (const PodValue& pod : pods) {
    const auto known = held_.find(pod.get());
    // A pod that is bound stays where it is.
    if (known != held_.end() && !pod->node.empty()) {
      known->second.round = round_;
      continue;
    }
    const std::optional<size_t> node = IndexOf(NodeOf(*pod, promises));
    if (known != held_.end() && node == known->second.node) {
      known->second.round = round_;
      continue;
    }
    if (known != held_.end()) {
      Drop(known->second);
      held_.erase(known);
    }
    if (!node) continue;
    Held held = {pod, *node, table_.Read(*pod->requests), round_,
                 HcasIn(*pod->requests, rdma_) == 0 && GpusIn(*pod->requests) == 0};
    Put(held);
    held_.emplace(pod.get(), std::move(held));
  }
  std::erase_if(held_, [this](const auto& entry) {
    if (entry.second.round == round_) return false;
    Drop(entry.second);
    return true;
  });
}

std::optional<size_t> ClusterRoom::IndexOf(const std::string& node) const {
  if (node.empty()) return std::nullopt;
  const auto found = indices_.find(node);
  if (found == indices_.end()) return std::nullopt;
  return found->second;
}

void ClusterRoom::Try(size_t node, const PodValue& pod, bool taken) {
  if (taken) {
    table_.Add(node, table_.Read(*pod->requests));
    neighbours_.Add(node, pod);
  } else {
    table_.Remove(node, table_.Read(*pod->requests));
    neighbours_.Remove(node, pod);
  }
  changes_.push_back(node);
}

void ClusterRoom::Take(size_t node, const PodValue& pod) {
  Try(node, pod, true);
  trials_.push_back({node, pod, true});
}

void ClusterRoom::GiveBack(size_t node, const PodValue& pod) {
  Try(node, pod, false);
  trials_.push_back({node, pod, false});
}

void ClusterRoom::EndTrials() {
  for (; !trials_.empty(); trials_.pop_back()) {
    const Trial& trial = trials_.back();
    Try(trial.node, trial.pod, !trial.taken);
  }
}

int ClusterRoom::RoomOn(const Shape& shape, size_t node, const AmountTable& table) const {
  const Facts& facts = facts_[node];
  const int gpus = shape.request.gpus_per_pod;
  const int hcas = shape.request.hcas_per_pod;
  if (!facts.usable || shape.allowed->nodes[node] == 0) return 0;
  if ((gpus == 0 && hcas == 0) || facts.alive < hcas) return 0;
  int64_t pods = table.Fits(node, shape.amounts);
  if (shape.one_on_a_node) pods = std::min<int64_t>(pods, 1);
  if (gpus > 0) pods = std::min<int64_t>(pods, facts.gpus / gpus);
  if (hcas > 0) pods = std::min<int64_t>(pods, facts.alive / hcas);
  const bool alone = shape.request.same_rails && hcas > 0 && !facts.more_than_rails;
  if (alone) pods = std::min<int64_t>(pods, 1);
  return static_cast<int>(pods);
}

void ClusterRoom::CountAll(const Shape& shape, const AmountTable& table, Count& count) const {
  count.of_node.assign(tree_->nodes.size(), 0);
  count.of_domain.clear();
  for (const auto& domains : tree_->model.domains) count.of_domain.emplace_back(domains.size());
  count.all = 0;
  for (size_t node = 0; node < count.of_node.size(); ++node) {
    CountAgain(shape, node, table, count);
  }
}

void ClusterRoom::CountAgain(const Shape& shape, size_t node, const AmountTable& table,
                             Count& count) const {
  const int room = RoomOn(shape, node, table);
  const int more = room - count.of_node[node];
  if (more == 0) return;
  count.of_node[node] = room;
  count.all += more;
  for (size_t level = 0; level < domains_.size(); ++level) {
    const int domain = domains_[level][node];
    if (domain >= 0) count.of_domain[level][static_cast<size_t>(domain)] += more;
  }
}

void ClusterRoom::CatchUp(Shape& shape) {
  for (; shape.as_of < changes_.size(); ++shape.as_of) {
    const size_t node = changes_[shape.as_of];
    CountAgain(shape, node, table_, shape.now);
    if (shape.when_free != nullptr) CountAgain(shape, node, staying_, *shape.when_free);
  }
}

// Before there are more changes than it would take to count all anew.
void ClusterRoom::ForgetChanges() {
  if (changes_.size() < 4 * tree_->nodes.size() + 1024) return;
  for (const auto& shape : shapes_) {
    CatchUp(*shape);
    shape->as_of = 0;
    if (shape->built == nullptr) continue;
    CatchUpBuilt(*shape);
    shape->built->as_of = 0;
  }
  changes_.clear();
}

std::shared_ptr<ClusterRoom::Allowed> ClusterRoom::AllowedBy(const NodeRules& rules) {
  for (const auto& shape : shapes_) {
    if (shape->allowed->rules == rules) return shape->allowed;
  }
  auto allowed = std::make_shared<Allowed>();
  allowed->rules = rules;
  allowed->nodes.reserve(tree_->nodes.size());
  for (const NodeValue& node : tree_->nodes) {
    const bool may = WhyNot(rules, node->name, node->labels, node->taints).empty();
    allowed->nodes.push_back(may ? 1 : 0);
  }
  return allowed;
}

ClusterRoom::Shape& ClusterRoom::ShapeOf(const Gang& gang) {
  const StoredPod& pod = *gang.gated.front();
  auto found = std::find_if(shapes_.begin(), shapes_.end(), [&](const auto& shape) {
    return shape->one_on_a_node == pod.member->one_on_a_node && shape->requests == gang.requests &&
           shape->request.same_rails == pod.member->terms->same_rails &&
           shape->allowed->rules == *pod.member->rules;
  });
  if (found == shapes_.end()) {
    if (shapes_.size() >= kMostShapes) {
      shapes_.erase(
          std::min_element(shapes_.begin(), shapes_.end(),
                           [](const auto& a, const auto& b) { return a->used_at < b->used_at; }));
    }
    auto shape = std::make_unique<Shape>();
    shape->requests = gang.requests;
    shape->amounts = table_.Read(*gang.requests);
    shape->one_on_a_node = pod.member->one_on_a_node;
    shape->request.gpus_per_pod = GpusIn(*gang.requests);
    shape->request.hcas_per_pod = HcasIn(*gang.requests, rdma_);
    shape->request.same_rails = pod.member->terms->same_rails;
    shape->allowed = AllowedBy(*pod.member->rules);
    CountAll(*shape, table_, shape->now);
    shape->as_of = changes_.size();
    shapes_.push_back(std::move(shape));
    found = shapes_.end() - 1;
  }
  Shape& shape = **found;
  shape.used_at = ++uses_;
  CatchUp(shape);
  return shape;
}

fabric::FabricNode ClusterRoom::Describe(const Shape& shape, size_t index) const {
  const StoredNode& stored = *tree_->nodes[index];
  const Facts& facts = facts_[index];
  fabric::FabricNode node = tree_->model.nodes[index];
  if (stored.cordoned) {
    node.unschedulable = "cordoned";
  } else if (!stored.ready) {
    node.unschedulable = "not ready";
  } else if (stored.hostname.empty()) {
    node.unschedulable = absl::StrCat("no label ", kHostname);
  } else {
    node.unschedulable = WhyNot(shape.allowed->rules, node.name, stored.labels, stored.taints);
  }
  int64_t pods = table_.Fits(index, shape.amounts);
  if (shape.one_on_a_node) pods = std::min<int64_t>(pods, 1);

  const int alive = std::max(0, facts.alive);
  node.hcas = facts.hcas;
  node.shared_hcas = facts.more_than_rails;
  node.gpus = facts.gpus;
  if (!facts.shared) {
    node.used_rails = RailsInUse(node, stored.used_rails, tree_->model.rails,
                                 std::min(table_.HcasInUse(index), alive));
  }
  if (pods > 0) {
    if (shape.request.gpus_per_pod > 0) {
      node.used_gpus = UsedFor(node.gpus, pods, shape.request.gpus_per_pod);
    }
    if (shape.request.hcas_per_pod > 0) {
      node.used_hcas = UsedFor(alive, pods, shape.request.hcas_per_pod);
    }
    return node;
  }
  node.used_gpus = std::max(0, node.gpus - table_.FreeGpus(index));
  node.used_hcas = std::max(0, alive - table_.FreeHcas(index));
  if (placement::RoomOnNode(node, shape.request).pods == 0) return node;
  // It is something else than GPUs and HCAs: the first of which there is not enough.
  auto of = shape.amounts.of.begin();
  for (const auto& [name, amount] : *shape.requests) {
    if (amount <= 0) continue;
    if (table_.FitsOf(index, *of) == 0) {
      node.unschedulable = table_.Has(index, *of)
                               ? absl::StrCat(name, " in use")
                               : absl::StrCat("less ", name, " than a pod requests");
      break;
    }
    ++of;
  }
  return node;
}

void ClusterRoom::Unmask(Built& built) {
  for (auto& [node, said] : built.masked) built.model.nodes[node].unschedulable = std::move(said);
  built.masked.clear();
}

ClusterRoom::Built& ClusterRoom::BuiltOf(Shape& shape) {
  if (shape.built == nullptr) {
    Shape* oldest = nullptr;
    size_t built = 0;
    for (const auto& other : shapes_) {
      if (other->built == nullptr) continue;
      ++built;
      if (oldest == nullptr || other->built->used_at < oldest->built->used_at) {
        oldest = other.get();
      }
    }
    // The allocations of the oldest model have the right size.
    if (built >= kMostModels) {
      shape.built = std::move(oldest->built);
      Unmask(*shape.built);
    } else {
      shape.built = std::make_unique<Built>();
      shape.built->model = tree_->model;
    }
    for (size_t i = 0; i < tree_->nodes.size(); ++i) {
      shape.built->model.nodes[i] = Describe(shape, i);
    }
    shape.built->as_of = changes_.size();
  }
  shape.built->used_at = uses_;
  CatchUpBuilt(shape);
  return *shape.built;
}

void ClusterRoom::CatchUpBuilt(Shape& shape) const {
  Built& built = *shape.built;
  Unmask(built);
  for (; built.as_of < changes_.size(); ++built.as_of) {
    const size_t node = changes_[built.as_of];
    built.model.nodes[node] = Describe(shape, node);
  }
}

template <typename Exclude>
void ClusterRoom::ForEachExcluded(const Gang& gang, const std::set<std::string>& refused,
                                  const Outside& outside, Exclude exclude) const {
  for (const auto& exclusion : outside) {
    for (size_t i = 0; i < exclusion->nodes.size(); ++i) {
      if (exclusion->nodes[i] != 0) exclude(i, exclusion->why, true);
    }
  }
  for (const std::string& name : refused) {
    if (const std::optional<size_t> node = IndexOf(name)) exclude(*node, kRefused, false);
  }
  if (gang.gated.front()->member->one_on_a_node) {
    for (const Released& other : gang.released) {
      if (const std::optional<size_t> node = IndexOf(other.node)) exclude(*node, kOwn, false);
    }
  }
  for (const auto& [node, why] : neighbours_.For(*gang.gated.front())) exclude(node, why, false);
}

const fabric::FabricModel& ClusterRoom::ModelFor(const Gang& gang,
                                                 const std::set<std::string>& refused,
                                                 const Outside& outside) {
  Built& built = BuiltOf(ShapeOf(gang));
  std::vector<char> masked(tree_->nodes.size());
  ForEachExcluded(gang, refused, outside, [&](size_t node, const auto& why, bool whatever) {
    std::string& says = built.model.nodes[node].unschedulable;
    if (masked[node] != 0 || (!whatever && !says.empty())) return;
    masked[node] = 1;
    built.masked.emplace_back(node, std::move(says));
    says = why;
  });
  return built.model;
}

int64_t ClusterRoom::MostIn(const Count& count, std::optional<int> level) {
  if (!level) return count.all;
  const std::vector<int64_t>& rooms = count.of_domain[static_cast<size_t>(*level)];
  return rooms.empty() ? 0 : *std::max_element(rooms.begin(), rooms.end());
}

bool ClusterRoom::HasRoom(const Gang& gang, int pods, const std::set<std::string>& refused,
                          const Outside& outside, std::optional<int> level) {
  const Shape& shape = ShapeOf(gang);
  // Exclusions only reduce the room.
  if (MostIn(shape.now, level) < pods) return false;
  std::vector<int64_t> rooms(1, shape.now.all);
  if (level) rooms = shape.now.of_domain[static_cast<size_t>(*level)];
  std::vector<char> excluded(tree_->nodes.size());
  ForEachExcluded(gang, refused, outside, [&](size_t node, const auto&, bool) {
    const int domain = level ? domains_[static_cast<size_t>(*level)][node] : 0;
    if (excluded[node] != 0 || domain < 0) return;
    excluded[node] = 1;
    rooms[static_cast<size_t>(domain)] -= shape.now.of_node[node];
  });
  return std::any_of(rooms.begin(), rooms.end(), [pods](int64_t room) { return room >= pods; });
}

int64_t ClusterRoom::MostRoomWhenFree(const Gang& gang, std::optional<int> level) {
  Shape& shape = ShapeOf(gang);
  if (shape.when_free == nullptr) {
    shape.when_free = std::make_unique<Count>();
    CountAll(shape, staying_, *shape.when_free);
  }
  return MostIn(*shape.when_free, level);
}

std::vector<NodeOutlook> ClusterRoom::OutlookFor(const Gang& gang,
                                                 const std::set<std::string>& refused) {
  MostRoomWhenFree(gang, std::nullopt);
  const Shape& shape = ShapeOf(gang);
  std::vector<NodeOutlook> nodes(tree_->nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i] = {shape.now.of_node[i], shape.when_free->of_node[i]};
  }
  ForEachExcluded(gang, refused, {}, [&](size_t node, const auto&, bool) { nodes[node].now = 0; });
  for (const std::string& name : refused) {
    if (const std::optional<size_t> node = IndexOf(name)) nodes[*node].at_best = 0;
  }
  return nodes;
}

}  // namespace railhead::op::gangs
