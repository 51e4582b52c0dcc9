// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/planner.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "fabric/model/fabric_model.h"
#include "operator/gangs/names.h"
#include "operator/placement/reasons.h"
#include "operator/placement/request.h"
#include "operator/placement/solver.h"

namespace railhead::op::gangs {
namespace {

using fabric::FabricModel;
using placement::PlacementRequest;

// Why a node is not to be used, by its index; empty: it may be.
using Outside = std::function<std::string(size_t)>;

// What the decision is called: the same pods on the same nodes have the same name.
std::string NameOf(const Gang& gang, const std::vector<Assignment>& assignments) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const Assignment& assignment : assignments) {
    for (const char c : absl::StrCat(assignment.pod->uid, "=", assignment.node, "\n")) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }
  return absl::StrFormat("%s-%016x", gang.name, hash);
}

std::string WherePlaced(const FabricModel& model, const PlacementRequest& request,
                        const placement::Placement& found) {
  std::vector<std::string> parts;
  for (size_t level = 0; level < model.levels.size(); ++level) {
    parts.push_back(absl::StrCat(model.levels[level], " ", found.score.domains[level]));
  }
  const std::set<int> nodes(found.node_of_rank.begin(), found.node_of_rank.end());
  return absl::StrCat(request.pods, request.pods == 1 ? " pod" : " pods", " on ", nodes.size(),
                      nodes.size() == 1 ? " node" : " nodes",
                      "; domains used: ", absl::StrJoin(parts, ", "));
}

// The room first, then what would help, then what is in the way.
std::string WhyWaiting(const FabricModel& model, const PlacementRequest& request) {
  const absl::StatusOr<std::vector<placement::Reason>> reasons =
      placement::WhyNotPlaced(model, request);
  if (!reasons.ok()) return std::string(reasons.status().message());
  std::vector<std::string> said;
  for (const placement::Reason::Kind kind :
       {placement::Reason::Kind::kRoom, placement::Reason::Kind::kChange,
        placement::Reason::Kind::kExcluded}) {
    for (const placement::Reason& reason : *reasons) {
      if (reason.kind == kind) said.push_back(reason.message);
    }
  }
  return absl::StrJoin(said, "; ");
}

class Planner {
 public:
  Planner(const RefusedNodes& refused, ClusterRoom& room)
      : refused_(refused),
        room_(room),
        tree_(room.tree()),
        domains_(fabric::DomainsOfNodes(tree_.model)) {}

  Decision Plan(Gang gang) {
    Decision decision;
    decision.gang = std::move(gang);
    if (decision.gang.gated.empty()) return decision;
    decision.message = WhyNotComplete(decision.gang);
    decision.state = Decision::State::kIncomplete;
    if (decision.message.empty()) Place(decision);
    return decision;
  }

 private:
  void Place(Decision& decision) {
    const Gang& gang = decision.gang;
    PlacementRequest request = RequestOf(gang);
    // A preference that nothing can meet is no reason to wait.
    if (!fabric::LevelIndex(tree_.model, request.prefer_level)) request.prefer_level.clear();
    const auto refused = refused_.find(gang.key);
    const std::set<std::string> none;
    FabricModel model;
    for (const Outside& outside : Areas(gang, request)) {
      model = room_.ModelFor(gang, refused == refused_.end() ? none : refused->second, outside);
      const absl::StatusOr<placement::Placement> found = placement::Solve(model, request);
      if (!found.ok()) {
        decision.message =
            absl::StrCat("pod ", gang.gated.front()->name, ": ", found.status().message());
        return;
      }
      if (!found->placed) continue;
      decision.state = Decision::State::kPlaced;
      decision.message = WherePlaced(model, request, *found);
      Assign(found->node_of_rank, decision);
      return;
    }
    decision.state = Decision::State::kWaiting;
    decision.message = WhyWaiting(model, request);
  }

  void Assign(const std::vector<int>& node_of_rank, Decision& decision) {
    const Gang& gang = decision.gang;
    const std::vector<int> ranks = RanksOf(gang);
    for (size_t i = 0; i < gang.gated.size(); ++i) {
      const auto node = static_cast<size_t>(node_of_rank[i]);
      decision.assignments.push_back(
          {gang.gated[i], tree_.model.nodes[node].name, tree_.nodes[node]->hostname, ranks[i]});
      room_.Take(node, gang.gated[i]->requests);
    }
    decision.placement = NameOf(gang, decision.assignments);
  }

  // The parts of the cluster to try, one after the other; at the end all that may be used.
  std::vector<Outside> Areas(const Gang& gang, const PlacementRequest& request) const {
    std::vector<Outside> areas;
    const std::optional<int> required = fabric::LevelIndex(tree_.model, request.require_level);
    const bool whole = request.require_level.empty();
    std::set<size_t> at;  // nodes that the gang is on
    for (const Released& released : gang.released) {
      if (const std::optional<size_t> node = room_.IndexOf(released.node)) at.insert(*node);
    }
    if (!at.empty()) {
      for (size_t level = tree_.model.levels.size(); level-- > 0;) {
        areas.push_back(WithinDomainsOf(at, level));
        if (required && static_cast<size_t>(*required) == level) return areas;
      }
    }
    if (tree_.placed < tree_.nodes.size() && tree_.placed > 0) {
      areas.push_back([this](size_t node) {
        return node < tree_.placed ? "" : std::string("no label says where in the topology it is");
      });
    }
    if (whole || areas.empty()) areas.push_back([](size_t) { return std::string(); });
    return areas;
  }

  Outside WithinDomainsOf(const std::set<size_t>& at, size_t level) const {
    std::set<int> used;
    for (const size_t node : at) used.insert(domains_[level][node]);
    return [this, used, level](size_t node) {
      return used.contains(domains_[level][node])
                 ? ""
                 : absl::StrCat("not in the ", tree_.model.levels[level],
                                used.size() == 1 ? " that" : "s that", " the gang is in");
    };
  }

  const RefusedNodes& refused_;
  ClusterRoom& room_;
  const NodeTree& tree_;
  const std::vector<std::vector<int>> domains_;  // [level][node]
};

}  // namespace

std::vector<Decision> Decide(std::vector<Gang> gangs, const RefusedNodes& refused,
                             ClusterRoom& room) {
  Planner planner(refused, room);
  std::vector<Decision> decisions;
  decisions.reserve(gangs.size());
  for (Gang& gang : gangs) decisions.push_back(planner.Plan(std::move(gang)));
  return decisions;
}

}  // namespace railhead::op::gangs
