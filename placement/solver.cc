// SPDX-License-Identifier: Apache-2.0
#include "placement/solver.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/model/fabric_model.h"
#include "placement/group_links.h"
#include "placement/leaf_choice.h"
#include "placement/leaf_shares.h"
#include "placement/node_room.h"
#include "placement/request.h"
#include "placement/score.h"

namespace railhead::placement {
namespace {

using fabric::FabricDomain;
using fabric::FabricModel;

absl::Status CheckLevel(const FabricModel& model, const char* field, const std::string& level) {
  if (level.empty() || fabric::LevelIndex(model, level)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("spec.", field, ": fabric ", model.name,
                                                 " has no level \"", level, "\"; its levels are ",
                                                 absl::StrJoin(model.levels, ", ")));
}

absl::Status Check(const FabricModel& model, const PlacementRequest& request) {
  if (request.pods < 1) {
    return absl::InvalidArgumentError("spec.pods: a gang has at least one pod");
  }
  if (request.gpus_per_pod < 0 || request.hcas_per_pod < 0 ||
      request.gpus_per_pod + request.hcas_per_pod == 0) {
    return absl::InvalidArgumentError(
        "spec: pods without GPUs and HCAs fit anywhere; set gpusPerPod or hcasPerPod");
  }
  int64_t product = 1;
  for (const auto& [name, size] : request.parallelism) {
    if (size < 1 || __builtin_mul_overflow(product, int64_t{size}, &product)) product = -1;
  }
  const int64_t gpus = int64_t{request.pods} * request.gpus_per_pod;
  if (!request.parallelism.empty() && product != gpus) {
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.parallelism: the product of its sizes must be pods x gpusPerPod = ", gpus));
  }
  absl::Status status = CheckLevel(model, "requireLevel", request.require_level);
  if (status.ok()) status = CheckLevel(model, "preferLevel", request.prefer_level);
  return status;
}

// Chooses leaves and their number of pods, for all nodes or for nodes with certain rails.
class Solver {
 public:
  Solver(const FabricModel& model, const PlacementRequest& request)
      : Solver(model, request, std::nullopt) {}

  // Uses only these domains of the outermost level.
  Solver(const FabricModel& model, const PlacementRequest& request,
         const std::optional<std::vector<int>>& only)
      : model_(model), request_(request) {
    const std::vector<int> outermost = fabric::DomainsOfNodes(model)[0];
    rails_.reserve(model.nodes.size());
    for (const fabric::FabricNode& node : model.nodes) {
      const bool may =
          !only || std::binary_search(only->begin(), only->end(), outermost[rails_.size()]);
      rails_.push_back(RailsOnNode(node, request.hcas_per_pod));
      Add(may ? RoomOnNode(node, request).pods : 0, room_);
      Add(may ? RoomForSameRails(node, request) : 0, alike_);
    }
    if (!request.require_level.empty()) {
      single_levels_ = *fabric::LevelIndex(model, request.require_level) + 1;
    }
  }

  // Returns the node of each rank, or nullopt if there is no room.
  absl::StatusOr<std::optional<std::vector<int>>> Solve() {
    const std::vector<int> all = LeafRooms(room_, std::nullopt);
    const absl::StatusOr<Leaves> least = Choose(all, std::vector<int64_t>(all.size(), 0));
    if (!least.ok()) return least.status();
    if (!*least) return std::nullopt;
    const bool one_kind = room_.of_rails.size() == 1;  // of nodes
    const bool one_each = alike_.of_node != room_.of_node;
    if (one_kind && !one_each) return Fill(**least, rails_of_one_kind(), room_);
    const std::vector<int> fewest = DomainsUsed(**least);
    absl::StatusOr<std::optional<Alike>> alike = SolveAlike(alike_, all, fewest);
    if (!alike.ok()) return alike.status();
    if (*alike) return Fill((*alike)->leaves, (*alike)->rails, alike_);
    if (request_.same_rails) return std::nullopt;
    if (one_kind) return Fill(**least, rails_of_one_kind(), room_);
    if (one_each) {
      alike = SolveAlike(room_, all, fewest);
      if (!alike.ok()) return alike.status();
      if (*alike) return Fill((*alike)->leaves, (*alike)->rails, room_);
    }
    return SolveMostAlike(all);
  }

  // The criteria before the order of the file.
  struct Key {
    std::vector<int> domains;
    bool different = false;  // not all pods get the same rails
    int64_t off = 0;         // pods on nodes of other kinds than most
    int64_t left = 0;        // room in the leaves

    bool operator==(const Key&) const = default;
  };

  Key KeyOf(const std::vector<int>& node_of_rank) const {
    const std::vector<int> leaf_of_node = fabric::DomainsOfNodes(model_).back();
    std::set<int> leaves;
    std::map<uint64_t, int64_t> given;
    int64_t most = 0;
    for (const int node : node_of_rank) {
      leaves.insert(leaf_of_node[static_cast<size_t>(node)]);
      most = std::max(most, ++given[rails_[static_cast<size_t>(node)]]);
    }
    const std::vector<uint64_t> rails = RailsOfRanks(model_, request_, node_of_rank);
    const std::vector<int> used(leaves.begin(), leaves.end());
    return {DomainsUsed(used),
            std::any_of(rails.begin(), rails.end(), [&](uint64_t r) { return r != rails[0]; }),
            request_.pods - most, Total(LeafRooms(room_, std::nullopt), used)};
  }

  std::vector<int64_t> RoomOfOutermost() const {
    const std::vector<int> domain_of_node = fabric::DomainsOfNodes(model_)[0];
    std::vector<int64_t> room(model_.domains[0].size());
    for (size_t i = 0; i < room_.of_node.size(); ++i) {
      room[static_cast<size_t>(domain_of_node[i])] += room_.of_node[i];
    }
    return room;
  }

 private:
  using Leaves = std::optional<std::vector<int>>;

  // Pods that fit. A node is of the kind of the rails that it gives its first pod.
  struct Room {
    std::vector<int> of_node;
    std::map<uint64_t, int64_t> of_rails;
  };

  // Adds the next node.
  void Add(int pods, Room& room) const {
    room.of_node.push_back(pods);
    if (pods > 0) room.of_rails[rails_[room.of_node.size() - 1]] += pods;
  }

  uint64_t rails_of_one_kind() const { return room_.of_rails.begin()->first; }

  // Returns the number of pods that fit on each leaf, on nodes with these rails or on all.
  std::vector<int> LeafRooms(const Room& places, std::optional<uint64_t> rails) const {
    std::vector<int> rooms;
    for (const FabricDomain& leaf : model_.domains.back()) {
      int64_t room = 0;
      for (size_t node = First(leaf); node < End(leaf); ++node) {
        if (!rails || rails_[node] == *rails) room += places.of_node[node];
      }
      rooms.push_back(static_cast<int>(std::min<int64_t>(room, kMostRoom)));
    }
    return rooms;
  }

  absl::StatusOr<Leaves> Choose(const std::vector<int>& rooms, const std::vector<int64_t>& costs) {
    std::vector<LeafOffer> offers(rooms.size());
    for (size_t i = 0; i < rooms.size(); ++i) offers[i] = {rooms[i], costs[i]};
    return ChooseLeaves(model_.domains, offers, request_.pods, single_levels_);
  }

  // Leaves whose nodes with `rails` have room for all pods.
  struct Alike {
    std::vector<int> domains;  // number per level
    int64_t left = 0;          // all room in these leaves
    std::vector<int> leaves;
    uint64_t rails = 0;
  };

  // Returns false if even the roomiest domains of some level are too few for all pods. `rooms`: of
  // leaves; `domains`: number per level.
  bool CouldHold(const std::vector<int>& rooms, const std::vector<int>& domains) const {
    std::vector<int64_t> inner(rooms.begin(), rooms.end());
    for (size_t level = domains.size(); level-- > 0;) {
      std::vector<int64_t> outer(level > 0 ? model_.domains[level - 1].size() : 0);
      for (size_t i = 0; i < inner.size() && level > 0; ++i) {
        outer[static_cast<size_t>(model_.domains[level][i].parent)] += inner[i];
      }
      const auto end = inner.begin() + domains[level];
      std::nth_element(inner.begin(), end, inner.end(), std::greater<>());
      if (std::accumulate(inner.begin(), end, int64_t{0}) < request_.pods) return false;
      inner = std::move(outer);
    }
    return true;
  }

  // Returns the rail sets of nodes, those with the most room first.
  static std::vector<std::pair<uint64_t, int64_t>> RailsByRoom(const Room& places) {
    std::vector<std::pair<uint64_t, int64_t>> classes(places.of_rails.begin(),
                                                      places.of_rails.end());
    std::stable_sort(classes.begin(), classes.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return classes;
  }

  // Places all pods on nodes of one kind. Returns nullopt if that is impossible in the `fewest`
  // domains, or with sameRails in any number of them.
  absl::StatusOr<std::optional<Alike>> SolveAlike(const Room& places, const std::vector<int>& all,
                                                  const std::vector<int>& fewest) {
    std::optional<Alike> best;
    for (const auto& [rails, room] : RailsByRoom(places)) {
      if (room < request_.pods) break;
      const std::vector<int> rooms = LeafRooms(places, rails);
      if (!request_.same_rails && !CouldHold(rooms, fewest)) continue;
      const absl::StatusOr<Leaves> found =
          Choose(rooms, std::vector<int64_t>(all.begin(), all.end()));
      if (!found.ok()) return found.status();
      if (!*found) continue;
      Alike alike = {DomainsUsed(**found), Total(all, **found), **found, rails};
      if (best && std::tie(best->domains, best->left) <= std::tie(alike.domains, alike.left)) {
        continue;
      }
      best = std::move(alike);
    }
    if (best && !request_.same_rails && best->domains != fewest) return std::nullopt;
    return best;
  }

  // Places the maximum number of pods on nodes of one kind, in the minimum of domains.
  absl::StatusOr<std::optional<std::vector<int>>> SolveMostAlike(const std::vector<int>& all) {
    std::optional<std::pair<int64_t, std::vector<int>>> best;  // pods alike, negative; the leaves
    uint64_t best_rails = 0;
    for (const auto& [rails, room] : RailsByRoom(room_)) {
      if (best && room <= -best->first) break;
      const std::vector<int> alike = LeafRooms(room_, rails);
      std::vector<int64_t> costs;
      costs.reserve(alike.size());
      for (const int pods : alike) costs.push_back(-pods);
      const absl::StatusOr<Leaves> found = Choose(all, costs);
      if (!found.ok()) return found.status();
      const int64_t off = -Total(alike, **found);
      if (best && best->first <= off) continue;
      best = {off, **found};
      best_rails = rails;
    }
    return Fill(best->second, best_rails, room_);
  }

  static int64_t Total(const std::vector<int>& rooms, const std::vector<int>& leaves) {
    int64_t total = 0;
    for (const int leaf : leaves) total += rooms[static_cast<size_t>(leaf)];
    return total;
  }

  // Returns the number of domains of each level that contain these leaves.
  std::vector<int> DomainsUsed(const std::vector<int>& leaves) const {
    std::vector<int> used(model_.levels.size());
    std::set<int> domains(leaves.begin(), leaves.end());
    for (size_t level = used.size(); level-- > 0;) {
      used[level] = static_cast<int>(domains.size());
      std::set<int> outer;
      for (const int i : domains) {
        outer.insert(model_.domains[level][static_cast<size_t>(i)].parent);
      }
      domains = std::move(outer);
    }
    return used;
  }

  // Puts the pods on these leaves: into `places` on nodes with `rails`, and on others only if those
  // do not suffice.
  absl::StatusOr<std::optional<std::vector<int>>> Fill(const std::vector<int>& leaves,
                                                       uint64_t rails, const Room& places) const {
    const std::vector<int> alike = LeafRooms(places, rails);
    const std::vector<int> all = LeafRooms(room_, std::nullopt);
    std::vector<ChosenLeaf> chosen;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const int next = leaves[std::min(i + 1, leaves.size() - 1)];
      chosen.push_back({alike[static_cast<size_t>(leaves[i])], Border(leaves[i], next)});
    }
    // Other nodes are needed only if all nodes with `rails` are full.
    int64_t others = request_.pods - Total(alike, leaves);
    std::vector<int> shares;
    if (others <= 0) {
      shares = ShareOut(chosen, static_cast<int>(model_.levels.size()), request_.pods,
                        request_.gpus_per_pod, GroupSizes(request_));
    } else {
      for (const ChosenLeaf& leaf : chosen) shares.push_back(leaf.room);
    }
    std::vector<int> node_of_rank;
    for (size_t n = 0; n < leaves.size(); ++n) {
      const auto i = static_cast<size_t>(leaves[n]);
      const int64_t here = std::clamp<int64_t>(others, 0, all[i] - alike[i]);
      for (const auto& [same, count] :
           {std::pair{true, shares[n]}, std::pair{false, static_cast<int>(here)}}) {
        absl::Status status = FillLeaf(i, rails, same, places, count, node_of_rank);
        if (!status.ok()) return status;
      }
      others -= here;
    }
    return node_of_rank;
  }

  // Returns the outermost level at which two leaves are in different domains.
  int Border(int a, int b) const {
    auto level = static_cast<int>(model_.levels.size()) - 1;
    int border = level;
    for (; level >= 0 && a != b; --level) {
      border = level;
      a = model_.domains[static_cast<size_t>(level)][static_cast<size_t>(a)].parent;
      b = model_.domains[static_cast<size_t>(level)][static_cast<size_t>(b)].parent;
    }
    return border;
  }

  // Puts `pods` pods on the nodes of a leaf with `rails`, or on its other nodes.
  absl::Status FillLeaf(size_t leaf, uint64_t rails, bool same, const Room& places, int pods,
                        std::vector<int>& node_of_rank) const {
    if (pods == 0) return absl::OkStatus();
    // Treats the nodes of the leaf like leaves of a fabric. Room that stays free counts as well.
    std::vector<size_t> nodes;
    std::vector<LeafOffer> offers;
    const FabricDomain& domain = model_.domains.back()[leaf];
    for (size_t node = First(domain); node < End(domain); ++node) {
      const int room = places.of_node[node];
      if (room == 0 || (rails_[node] == rails) != same) continue;
      nodes.push_back(node);
      offers.push_back({room, room_.of_node[node] - room});
    }
    const absl::StatusOr<Leaves> used =
        ChooseLeaves({std::vector<FabricDomain>(nodes.size())}, offers, pods, 0);
    if (!used.ok()) return used.status();
    for (const int i : **used) {
      const int here = std::min(pods, offers[static_cast<size_t>(i)].room);
      node_of_rank.insert(node_of_rank.end(), static_cast<size_t>(here),
                          static_cast<int>(nodes[static_cast<size_t>(i)]));
      pods -= here;
    }
    return absl::OkStatus();
  }

  static size_t First(const FabricDomain& leaf) { return static_cast<size_t>(leaf.first); }
  static size_t End(const FabricDomain& leaf) {
    return static_cast<size_t>(leaf.first) + static_cast<size_t>(leaf.count);
  }

  // At least the number of pods of any gang.
  static constexpr int64_t kMostRoom = 1 << 30;

  const FabricModel& model_;
  const PlacementRequest& request_;
  int single_levels_ = 0;
  std::vector<uint64_t> rails_;  // that each node gives its first pod
  Room room_;
  Room alike_;  // of `room_`, where all pods of a node get the same rails
};

// For a gang that spans groups of a dragonfly: returns an otherwise equal placement on groups with
// faster links.
absl::StatusOr<std::vector<int>> OnBetterLinks(const FabricModel& model,
                                               const PlacementRequest& request,
                                               const Solver& solver, std::vector<int> nodes) {
  const std::vector<int> group_of_node = fabric::DomainsOfNodes(model)[0];
  std::set<int> groups;
  for (const int node : nodes) groups.insert(group_of_node[static_cast<size_t>(node)]);
  if (groups.size() < 2) return nodes;
  const Solver::Key key = solver.KeyOf(nodes);
  for (const std::vector<int>& set :
       BetterLinkedGroups(model, request.pattern, solver.RoomOfOutermost(), request.pods,
                          {groups.begin(), groups.end()})) {
    absl::StatusOr<std::optional<std::vector<int>>> other = Solver(model, request, set).Solve();
    if (!other.ok()) return other.status();
    if (*other && solver.KeyOf(**other) == key) return **std::move(other);
  }
  return nodes;
}

}  // namespace

absl::StatusOr<Placement> Solve(const FabricModel& model, const PlacementRequest& request) {
  absl::Status status = Check(model, request);
  if (!status.ok()) return status;
  Solver solver(model, request);
  absl::StatusOr<std::optional<std::vector<int>>> nodes = solver.Solve();
  if (!nodes.ok()) return nodes.status();
  Placement placement;
  if (!*nodes) return placement;
  if (!model.global_links.empty()) {
    absl::StatusOr<std::vector<int>> linked =
        OnBetterLinks(model, request, solver, **std::move(nodes));
    if (!linked.ok()) return linked.status();
    nodes = *std::move(linked);
  }
  placement.placed = true;
  placement.node_of_rank = **std::move(nodes);
  placement.score = ScoreOf(model, request, placement.node_of_rank);
  // For groups of ranks only the leaves' shares are optimized, not the choice of leaves. The result
  // is optimal if it cuts no more groups than the lower bound.
  placement.optimal =
      std::all_of(placement.score.groups.begin(), placement.score.groups.end(),
                  [](const GroupCuts& group) { return group.cuts == group.at_least; });
  return placement;
}

absl::StatusOr<bool> Fits(const FabricModel& model, const PlacementRequest& request,
                          const std::map<size_t, fabric::FabricNode>& instead) {
  absl::Status status = Check(model, request);
  if (!status.ok()) return status;
  // Room of each domain that could contain all pods; by set of rails if these must be the same.
  std::vector<int> domain_of_node(model.nodes.size(), 0);
  size_t domains = 1;
  if (!request.require_level.empty()) {
    const auto level = static_cast<size_t>(*fabric::LevelIndex(model, request.require_level));
    domain_of_node = fabric::DomainsOfNodes(model)[level];
    domains = model.domains[level].size();
  }
  std::vector<std::map<uint64_t, int64_t>> rooms(domains);
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const auto other = instead.empty() ? instead.end() : instead.find(i);
    const fabric::FabricNode& node = other == instead.end() ? model.nodes[i] : other->second;
    const int room =
        request.same_rails ? RoomForSameRails(node, request) : RoomOnNode(node, request).pods;
    if (room == 0) continue;
    const uint64_t rails = request.same_rails ? RailsOnNode(node, request.hcas_per_pod) : 0;
    auto& of_domain = rooms[static_cast<size_t>(domain_of_node[i])][rails];
    of_domain += room;
    if (of_domain >= request.pods) return true;
  }
  return false;
}

}  // namespace railhead::placement
