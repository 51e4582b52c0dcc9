// SPDX-License-Identifier: Apache-2.0
#include "placement/reasons.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "fabric/model/fabric_model.h"
#include "placement/node_room.h"
#include "placement/request.h"
#include "placement/solver.h"

namespace railhead::placement {
namespace {

using fabric::FabricModel;
using fabric::FabricNode;

// Maximum number of nodes or causes in a message.
constexpr size_t kMostNames = 8;
constexpr size_t kMostCauses = 16;

std::string Counted(int64_t count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// Returns the node without pods and faults.
FabricNode Freed(FabricNode node) {
  node.used_gpus = 0;
  node.used_hcas = 0;
  node.dead_rails.clear();
  node.used_rails.clear();
  node.unschedulable.clear();
  return node;
}

// Returns the work that frees the node: "n7 (drain: 6 of 8 GPUs in use)".
std::string ToDo(const FabricNode& node, const PlacementRequest& request) {
  std::vector<std::string> work;
  if (!node.unschedulable.empty()) {
    work.push_back(absl::StrCat("make schedulable: ", node.unschedulable));
  }
  if (request.gpus_per_pod > 0 && node.used_gpus > 0) {
    work.push_back(absl::StrCat("drain: ", node.used_gpus, " of ", node.gpus, " GPUs in use"));
  } else if (request.hcas_per_pod > 0 && node.used_hcas > 0) {
    work.push_back(absl::StrCat("drain: ", node.used_hcas, " of ", node.hcas, " HCAs in use"));
  }
  if (request.hcas_per_pod > 0 && !node.dead_rails.empty()) {
    work.push_back(absl::StrCat("repair rail ", absl::StrJoin(node.dead_rails, ", ")));
  }
  return absl::StrCat(node.name, " (", absl::StrJoin(work, "; "), ")");
}

// A part of the fabric that the whole gang must fit into: a domain of the required level, or all.
struct Region {
  std::string name;
  int64_t room = 0;  // with sameRails for pods that get the same rails
  // Room to which freed nodes add. With sameRails, on nodes with the same rails as a free node.
  int64_t base = 0;
  std::vector<std::pair<int, size_t>> gains = {};  // pods that a node would add if it were free
};

class Reasons {
 public:
  Reasons(const FabricModel& model, const PlacementRequest& request)
      : model_(model), request_(request) {
    std::vector<int> region_of_node(model.nodes.size(), 0);
    if (request.require_level.empty()) {
      regions_.push_back({.name = absl::StrCat("fabric ", model.name)});
    } else {
      const auto level = static_cast<size_t>(*fabric::LevelIndex(model, request.require_level));
      region_of_node = fabric::DomainsOfNodes(model)[level];
      for (const fabric::FabricDomain& domain : model.domains[level]) {
        regions_.push_back({.name = absl::StrCat(request.require_level, " ", domain.name)});
      }
    }
    std::vector<std::map<uint64_t, int64_t>> room_of_rails(regions_.size());
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      const FabricNode& node = model.nodes[i];
      const auto at = static_cast<size_t>(region_of_node[i]);
      const int pods = RoomThatCounts(node);
      const FabricNode free = Freed(node);
      const uint64_t rails = RailsThatCount(node);
      const int base = rails == RailsThatCount(free) ? pods : 0;
      room_of_rails[at][rails] += pods;
      regions_[at].base += base;
      if (pods > 0) ++usable_;
      const int gain = RoomThatCounts(free) - base;
      if (gain > 0) regions_[at].gains.emplace_back(gain, i);
    }
    for (size_t i = 0; i < regions_.size(); ++i) {
      for (const auto& [rails, pods] : room_of_rails[i]) {
        regions_[i].room = std::max(regions_[i].room, pods);
      }
    }
  }

  absl::StatusOr<std::vector<Reason>> Find() {
    reasons_ = Exclusions(model_, request_);
    Room();
    for (const auto find :
         {&Reasons::FreeNodes, &Reasons::FewerPods, &Reasons::WiderLevel, &Reasons::OtherRails}) {
      absl::Status status = (this->*find)();
      if (!status.ok()) return status;
    }
    return std::move(reasons_);
  }

 private:
  // Returns the rails that must be the same for all pods; none without sameRails.
  uint64_t RailsThatCount(const FabricNode& node) const {
    return request_.same_rails ? RailsOnNode(node, request_.hcas_per_pod) : 0;
  }

  int RoomThatCounts(const FabricNode& node) const {
    return request_.same_rails ? RoomForSameRails(node, request_) : RoomOnNode(node, request_).pods;
  }

  void Add(Reason::Kind kind, std::string what, int64_t nodes, std::string message) {
    reasons_.push_back({kind, std::move(what), static_cast<int>(nodes), std::move(message)});
  }

  // Returns the index of the region with the most room.
  size_t Roomiest() const {
    size_t best = 0;
    for (size_t i = 1; i < regions_.size(); ++i) {
      if (regions_[i].room > regions_[best].room) best = i;
    }
    return best;
  }

  void Room() {
    if (regions_.empty()) return;
    const Region& best = regions_[Roomiest()];
    Add(Reason::Kind::kRoom, best.name, usable_,
        absl::StrCat(Counted(usable_, "node"), usable_ == 1 ? " takes" : " take", " pods; ",
                     regions_.size() > 1 ? "the most room in one " + request_.require_level +
                                               " is that of " + best.name
                                         : best.name,
                     regions_.size() > 1 ? ": " : " has room for ", best.room, " of ",
                     Counted(request_.pods, "pod"),
                     request_.same_rails ? " on nodes that give the same rails" : ""));
  }

  // Finds the fewest nodes of one region that give enough room if freed: those that gain most.
  absl::Status FreeNodes() {
    std::optional<std::vector<size_t>> fewest;
    const Region* in = nullptr;
    for (Region& region : regions_) {
      std::stable_sort(region.gains.begin(), region.gains.end(),
                       [](const auto& a, const auto& b) { return a.first > b.first; });
      std::vector<size_t> nodes;
      int64_t missing = request_.pods - region.base;
      for (size_t i = 0; i < region.gains.size() && missing > 0; ++i) {
        missing -= region.gains[i].first;
        nodes.push_back(region.gains[i].second);
      }
      if (missing > 0 || (fewest && fewest->size() <= nodes.size())) continue;
      fewest = std::move(nodes);
      in = &region;
    }
    if (!fewest) return absl::OkStatus();
    std::map<size_t, FabricNode> freed;
    std::vector<std::string> work;
    for (const size_t i : *fewest) {
      freed.emplace(i, Freed(model_.nodes[i]));
      if (work.size() < kMostNames) work.push_back(ToDo(model_.nodes[i], request_));
    }
    const absl::StatusOr<bool> fits = Fits(model_, request_, freed);
    if (!fits.ok()) return fits.status();
    if (!*fits) return absl::InternalError("freed nodes gave less room than computed");
    if (work.size() < fewest->size()) {
      work.push_back(absl::StrCat("and ", fewest->size() - work.size(), " more"));
    }
    Add(Reason::Kind::kChange, "nodes", static_cast<int64_t>(fewest->size()),
        absl::StrCat("fits if ", Counted(static_cast<int64_t>(fewest->size()), "node"), " of ",
                     in->name, fewest->size() == 1 ? " is" : " are",
                     " free: ", absl::StrJoin(work, ", ")));
    return absl::OkStatus();
  }

  absl::Status FewerPods() {
    const int64_t most = regions_.empty() ? 0 : regions_[Roomiest()].room;
    if (most < 1) return absl::OkStatus();
    PlacementRequest smaller = request_;
    smaller.pods = static_cast<int>(most);
    smaller.parallelism.clear();  // its product is that of the larger gang
    const absl::StatusOr<bool> fits = Fits(model_, smaller);
    if (!fits.ok()) return fits.status();
    if (!*fits) return absl::InternalError("a gang of the size of the room did not fit");
    Add(Reason::Kind::kChange, "pods", 0,
        absl::StrCat("fits with ", Counted(most, "pod"), " instead of ", request_.pods));
    return absl::OkStatus();
  }

  absl::Status WiderLevel() {
    if (request_.require_level.empty()) return absl::OkStatus();
    PlacementRequest wider = request_;
    for (int level = *fabric::LevelIndex(model_, request_.require_level) - 1; level >= -1;
         --level) {
      wider.require_level = level < 0 ? "" : model_.levels[static_cast<size_t>(level)];
      const absl::StatusOr<bool> fits = Fits(model_, wider);
      if (!fits.ok()) return fits.status();
      if (!*fits) continue;
      Add(Reason::Kind::kChange, "requireLevel", 0,
          absl::StrCat("fits ",
                       level < 0 ? "without requireLevel"
                                 : absl::StrCat("with requireLevel: ", wider.require_level),
                       " instead of requireLevel: ", request_.require_level));
      break;
    }
    return absl::OkStatus();
  }

  absl::Status OtherRails() {
    if (!request_.same_rails) return absl::OkStatus();
    PlacementRequest any = request_;
    any.same_rails = false;
    const absl::StatusOr<bool> fits = Fits(model_, any);
    if (!fits.ok()) return fits.status();
    if (!*fits) return absl::OkStatus();
    Add(Reason::Kind::kChange, "sameRails", 0,
        "fits if pods may get different rails (without sameRails)");
    return absl::OkStatus();
  }

  const FabricModel& model_;
  const PlacementRequest& request_;
  std::vector<Region> regions_;
  int usable_ = 0;
  std::vector<Reason> reasons_;
};

}  // namespace

std::vector<Reason> Exclusions(const FabricModel& model, const PlacementRequest& request) {
  // Many nodes share a cause, so each text is built once.
  struct Cause {
    const FabricNode* one = nullptr;
    int nodes = 0;
  };
  std::map<std::pair<Obstacle, absl::string_view>, Cause> found;
  for (const FabricNode& node : model.nodes) {
    const NodeRoom room = RoomOnNode(node, request);
    if (room.pods > 0) continue;
    Cause& cause = found[{room.obstacle, node.unschedulable}];
    cause.one = &node;
    ++cause.nodes;
  }
  std::map<std::string, int> nodes_of_cause;
  for (const auto& [what, cause] : found) {
    nodes_of_cause[Describe(what.first, *cause.one)] += cause.nodes;
  }
  std::vector<std::pair<std::string, int>> causes(nodes_of_cause.begin(), nodes_of_cause.end());
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  int others = 0;
  for (size_t i = kMostCauses; i < causes.size(); ++i) others += causes[i].second;
  if (causes.size() > kMostCauses) {
    causes.resize(kMostCauses);
    causes.emplace_back("other causes", others);
  }
  std::vector<Reason> reasons;
  reasons.reserve(causes.size());
  for (const auto& [cause, nodes] : causes) {
    reasons.push_back(
        {Reason::Kind::kExcluded, cause, nodes,
         absl::StrCat(nodes, " of ", Counted(static_cast<int64_t>(model.nodes.size()), "node"),
                      " excluded: ", cause)});
  }
  return reasons;
}

absl::StatusOr<std::vector<Reason>> WhyNotPlaced(const FabricModel& model,
                                                 const PlacementRequest& request) {
  const absl::StatusOr<bool> fits = Fits(model, request);
  if (!fits.ok()) return fits.status();
  if (*fits) return std::vector<Reason>{};
  return Reasons(model, request).Find();
}

}  // namespace railhead::placement
