// SPDX-License-Identifier: Apache-2.0
#include "placement/solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "fabric/model/fabric_model.h"
#include "fabric/model/model_json.h"
#include "placement/group_links.h"
#include "placement/node_room.h"
#include "placement/testing/best_fit.h"
#include "placement/testing/random_fabric.h"

namespace railhead::placement {
namespace {

using fabric::FabricModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two levels, from how many free nodes each leaf has: {{spine 0's leaves}, {spine 1's}, ...}.
FabricModel Tree(const std::vector<std::vector<int>>& free_nodes) {
  FabricModel model;
  model.name = "tree";
  model.levels = {"spine", "leaf"};
  model.rails = 8;
  model.domains.resize(2);
  for (const std::vector<int>& spine : free_nodes) {
    const auto parent = static_cast<int>(model.domains[0].size());
    model.domains[0].push_back({absl::StrCat("sp", parent), -1,
                                static_cast<int>(model.domains[1].size()),
                                static_cast<int>(spine.size())});
    for (const int nodes : spine) {
      model.domains[1].push_back({absl::StrCat("lf", model.domains[1].size()), parent,
                                  static_cast<int>(model.nodes.size()), nodes});
      for (int i = 0; i < nodes; ++i) {
        model.nodes.push_back({absl::StrCat("n", model.nodes.size()), 8, 8, 0, 0, {}, ""});
      }
    }
  }
  return model;
}

PlacementRequest Gang(int pods, int gpus = 8, int hcas = 8) {
  PlacementRequest request;
  request.name = "job";
  request.pods = pods;
  request.gpus_per_pod = gpus;
  request.hcas_per_pod = hcas;
  return request;
}

Placement MustSolve(const FabricModel& model, const PlacementRequest& request) {
  absl::StatusOr<Placement> placement = Solve(model, request);
  EXPECT_TRUE(placement.ok()) << placement.status();
  return placement.ok() ? *placement : Placement{};
}

std::vector<int> LeavesOf(const FabricModel& model, const std::vector<int>& node_of_rank) {
  const std::vector<int> leaf_of_node = fabric::DomainsOfNodes(model).back();
  std::set<int> leaves;
  for (const int node : node_of_rank) leaves.insert(leaf_of_node[static_cast<size_t>(node)]);
  return {leaves.begin(), leaves.end()};
}

std::vector<int> SolvedLeaves(const FabricModel& model, int pods) {
  return LeavesOf(model, MustSolve(model, Gang(pods)).node_of_rank);
}

TEST(Solver, OneLeafThatFitsTightest) {
  const FabricModel model = Tree({{6, 4}, {5, 4}});
  EXPECT_THAT(SolvedLeaves(model, 5), ElementsAre(2));
  EXPECT_THAT(SolvedLeaves(model, 4), ElementsAre(3));  // of two equal ones, where less room is
  EXPECT_THAT(SolvedLeaves(model, 6), ElementsAre(0));
}

TEST(Solver, WhatIsWholeStaysWhole) {
  // A gang of one leaf does not break into the only spine that all of another one fits into.
  EXPECT_THAT(SolvedLeaves(Tree({{4, 4}, {4, 2}, {3, 4}}), 4), ElementsAre(2));
  EXPECT_THAT(SolvedLeaves(Tree({{4, 4}, {3, 4}, {4, 2}}), 4), ElementsAre(4));
  EXPECT_THAT(SolvedLeaves(Tree({{4, 4}, {4, 4}}), 4), ElementsAre(0));
}

TEST(Solver, FewestSpinesBeforeFewestLeaves) {
  // Two leaves in two spines would do, but three leaves in one spine do as well.
  EXPECT_THAT(SolvedLeaves(Tree({{8, 1}, {4, 4, 4}, {4, 0}}), 12), ElementsAre(2, 3, 4));
}

TEST(Solver, FewestLeavesThoughAnotherSpineIsTighter) {
  // The usual greedy takes spine 1, which is the tightest, and four leaves there.
  const FabricModel model = Tree({{8, 8, 8}, {4, 4, 4, 4}});
  EXPECT_THAT(SolvedLeaves(model, 16), ElementsAre(0, 1));
  EXPECT_EQ(LeavesOf(model, testing::BestFit(model, Gang(16))).size(), 4U);
}

TEST(Solver, TightestOfLeavesThatAreAsFew) {
  // 5 + 4 leaves nothing, where the largest leaves 6 + 5 would leave two.
  EXPECT_THAT(SolvedLeaves(Tree({{6, 5, 4, 2}}), 9), ElementsAre(1, 2));
}

TEST(Solver, RanksFollowTheFabric) {
  const FabricModel model = Tree({{2, 2}, {3, 2}});
  const Placement placement = MustSolve(model, Gang(9));
  EXPECT_TRUE(placement.placed);
  EXPECT_TRUE(placement.optimal);
  EXPECT_THAT(placement.node_of_rank, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(placement.score.domains, ElementsAre(2, 4));
  EXPECT_THAT(placement.score.ring_crossings, ElementsAre(2, 4));
  EXPECT_EQ(placement.score.rail_mismatches, 0);
}

TEST(Solver, RequiredLevelIsOneDomain) {
  const FabricModel model = Tree({{8, 8}, {4, 4}});
  PlacementRequest request = Gang(17);
  EXPECT_TRUE(MustSolve(model, request).placed);
  request.require_level = "spine";
  EXPECT_FALSE(MustSolve(model, request).placed);
  request.pods = 16;
  EXPECT_TRUE(MustSolve(model, request).placed);
  request.require_level = "leaf";
  EXPECT_FALSE(MustSolve(model, request).placed);
  request.pods = 4;
  EXPECT_THAT(LeavesOf(model, MustSolve(model, request).node_of_rank), ElementsAre(2));
}

TEST(Solver, PodsThatShareNodesTakeFewNodesThatFitTightest) {
  FabricModel model = Tree({{3}});
  model.nodes[0].used_gpus = 6;  // room for one pod of two GPUs
  model.nodes[2].used_gpus = 2;  // room for three
  EXPECT_THAT(MustSolve(model, Gang(3, 2, 0)).node_of_rank, ElementsAre(2, 2, 2));
  EXPECT_THAT(MustSolve(model, Gang(1, 2, 0)).node_of_rank, ElementsAre(0));
  EXPECT_THAT(MustSolve(model, Gang(4, 2, 0)).node_of_rank, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(MustSolve(model, Gang(8, 2, 0)).node_of_rank, ElementsAre(0, 1, 1, 1, 1, 2, 2, 2));
  EXPECT_FALSE(MustSolve(model, Gang(9, 2, 0)).placed);
}

TEST(Solver, DeadRails) {
  FabricModel model = Tree({{3, 3}});
  model.nodes[0].dead_rails = {3};
  // A pod that needs the dead rail may not go there.
  EXPECT_THAT(MustSolve(model, Gang(3)).node_of_rank, ElementsAre(3, 4, 5));
  EXPECT_THAT(MustSolve(model, Gang(5)).node_of_rank, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_FALSE(MustSolve(model, Gang(6)).placed);
  // One that asks for fewer HCAs than are alive may, when avoiding it would cost a leaf.
  model.nodes[3].dead_rails = {3};
  const Placement mixed = MustSolve(model, Gang(3, 8, 4));
  EXPECT_EQ(mixed.score.domains, (std::vector<int>{1, 1}));
  EXPECT_EQ(mixed.node_of_rank, (std::vector<int>{1, 2, 0}));  // other rails come last
  EXPECT_EQ(mixed.score.rail_mismatches, 2);
  // Two pods fit on like nodes of one leaf.
  EXPECT_EQ(MustSolve(model, Gang(2, 8, 4)).score.rail_mismatches, 0);
  EXPECT_THAT(MustSolve(model, Gang(2, 8, 4)).node_of_rank, ElementsAre(1, 2));
}

TEST(Solver, LikeRailsBeforeATighterFit) {
  FabricModel model = Tree({{2, 3}});
  model.nodes[0].dead_rails = {0};
  const Placement placement = MustSolve(model, Gang(2, 8, 4));
  EXPECT_THAT(placement.node_of_rank, ElementsAre(2, 3));
  EXPECT_EQ(placement.score.rail_mismatches, 0);
}

TEST(Solver, ARailThatNoPodIsGivenDoesNotMatter) {
  FabricModel model = Tree({{2, 3}});
  model.nodes[0].dead_rails = {7};  // pods of 4 HCAs are given rails 0 to 3
  const Placement placement = MustSolve(model, Gang(2, 8, 4));
  EXPECT_THAT(placement.node_of_rank, ElementsAre(0, 1));
  EXPECT_EQ(placement.score.rail_mismatches, 0);
}

TEST(Solver, RailsInUseAreNotGiven) {
  FabricModel model = Tree({{2, 2}});
  // Pods of two HCAs elsewhere: the agent gives the lowest rails that are free.
  for (const size_t node : {0, 3}) {
    model.nodes[node].used_gpus = 2;
    model.nodes[node].used_hcas = 2;
    model.nodes[node].used_rails = {0, 1};
  }
  // Alike, though it costs no more room to take a leaf of two kinds.
  Placement placement = MustSolve(model, Gang(2, 2, 2));
  EXPECT_EQ(placement.score.domains[1], 1);
  // Three pods of six GPUs need both leaves; two of them are given the same rails.
  placement = MustSolve(model, Gang(3, 6, 6));
  EXPECT_EQ(placement.score.domains[1], 2);
  EXPECT_GT(placement.score.rail_mismatches, 0);
  PlacementRequest same = Gang(3, 6, 6);
  same.same_rails = true;
  EXPECT_FALSE(MustSolve(model, same).placed);
  same.pods = 2;
  placement = MustSolve(model, same);
  ASSERT_TRUE(placement.placed);
  EXPECT_EQ(placement.score.rail_mismatches, 0);
  EXPECT_EQ(placement.score.domains[1], 2) << "one leaf has no two nodes alike";
  EXPECT_EQ(MustSolve(model, Gang(2, 6, 6)).score.domains[1], 1) << "which is not asked for here";
}

TEST(Solver, PodsOfOneNodeGetDifferentRails) {
  const FabricModel model = Tree({{4}});
  PlacementRequest request = Gang(4, 4, 4);
  // The first pod of a node gets rails 0 to 3, the second one 4 to 7.
  for (const bool same_rails : {false, true}) {
    request.same_rails = same_rails;
    const Placement placement = MustSolve(model, request);
    EXPECT_THAT(placement.node_of_rank, ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(placement.score.rail_mismatches, 0);
  }
  request.pods = 5;
  EXPECT_FALSE(MustSolve(model, request).placed);
  // No node more than needed is used where pods get different rails anyway.
  request.same_rails = false;
  const Placement placement = MustSolve(model, request);
  EXPECT_THAT(placement.node_of_rank, ElementsAre(0, 0, 1, 1, 2));
  EXPECT_EQ(placement.score.rail_mismatches, 4);  // all but that of ranks 4 and 0
  EXPECT_TRUE(placement.optimal);
}

TEST(Solver, FewestDomainsBeforeTheSameRails) {
  const FabricModel model = Tree({{2, 2}, {3}});
  PlacementRequest request = Gang(4, 4, 4);
  Placement placement = MustSolve(model, request);
  EXPECT_THAT(placement.node_of_rank, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(placement.score.rail_mismatches, 4);
  request.same_rails = true;
  placement = MustSolve(model, request);
  EXPECT_THAT(placement.node_of_rank, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(placement.score.rail_mismatches, 0);
  request.require_level = "leaf";
  EXPECT_FALSE(MustSolve(model, request).placed);
  request.pods = 3;
  EXPECT_THAT(MustSolve(model, request).node_of_rank, ElementsAre(4, 5, 6));
}

TEST(Solver, PodsThatShareHcasOrNeedNoneMayShareANode) {
  FabricModel model = Tree({{4}});
  PlacementRequest request = Gang(4, 2, 0);
  request.same_rails = true;
  EXPECT_THAT(MustSolve(model, request).node_of_rank, ElementsAre(0, 0, 0, 0));
  for (fabric::FabricNode& node : model.nodes) {
    node.hcas = 64;
    node.shared_hcas = true;
  }
  request.hcas_per_pod = 8;
  const Placement placement = MustSolve(model, request);
  EXPECT_THAT(placement.node_of_rank, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(placement.score.rail_mismatches, 0);
}

TEST(Solver, TheSameRailsOnNodesThatFitTightest) {
  FabricModel model = Tree({{4}});
  for (const size_t node : {1, 3}) {
    model.nodes[node].used_gpus = 4;
    model.nodes[node].used_rails = {4, 5, 6, 7};
    model.nodes[node].used_hcas = 4;
  }
  EXPECT_THAT(MustSolve(model, Gang(1, 4, 4)).node_of_rank, ElementsAre(1));
  EXPECT_THAT(MustSolve(model, Gang(3, 4, 4)).node_of_rank, ElementsAre(0, 1, 3));
}

TEST(Solver, PatternsAreCounted) {
  const FabricModel model = Tree({{2, 2}});
  PlacementRequest request = Gang(4);
  EXPECT_THAT(MustSolve(model, request).score.pattern_crossings, ElementsAre(0, 2));
  request.pattern = Pattern::kTree;  // 0-1, 0-2, 1-3
  EXPECT_THAT(MustSolve(model, request).score.pattern_crossings, ElementsAre(0, 2));
  request.pattern = Pattern::kAllToAll;
  EXPECT_THAT(MustSolve(model, request).score.pattern_crossings, ElementsAre(0, 4));
}

TEST(Solver, BordersFallBetweenParallelismGroups) {
  PlacementRequest request = Gang(8);
  request.parallelism = {{"tp", 8}, {"pp", 4}, {"dp", 2}};  // groups of 1 and of 4 pods
  const FabricModel model = Tree({{5, 4}});
  const Placement placement = MustSolve(model, request);
  EXPECT_THAT(placement.node_of_rank, ElementsAre(0, 1, 2, 3, 5, 6, 7, 8));
  EXPECT_TRUE(placement.optimal);
  EXPECT_THAT(placement.score.groups,
              ElementsAre(GroupCuts{"tp", {0, 0}, {0, 0}}, GroupCuts{"pp", {0, 0}, {0, 0}}));
  // Nothing is left that could be left elsewhere, and for all that is known it is not the best.
  const Placement cut = MustSolve(Tree({{5, 3}}), request);
  EXPECT_THAT(cut.score.groups[1], (GroupCuts{"pp", {0, 1}, {0, 0}}));
  EXPECT_FALSE(cut.optimal);
  // No leaf holds a group, so every answer cuts all of them.
  const Placement forced = MustSolve(Tree({{2, 2, 2, 2}}), request);
  EXPECT_THAT(forced.score.groups[1], (GroupCuts{"pp", {0, 2}, {0, 2}}));
  EXPECT_TRUE(forced.optimal);
}

TEST(Solver, ADragonflyIsTheTreeOfItsGroupsAndRouters) {
  FabricModel model = Tree({{3, 3}, {6, 2}});
  model.topology = fabric::FabricTopology::kDragonfly;
  model.levels = {"group", "router"};
  model.global_links = {{"sp0", "sp1", 200}};
  EXPECT_THAT(LeavesOf(model, MustSolve(model, Gang(3)).node_of_rank), ElementsAre(0));
  EXPECT_THAT(LeavesOf(model, MustSolve(model, Gang(7)).node_of_rank), ElementsAre(2, 3));
  EXPECT_THAT(MustSolve(model, Gang(9)).score.domains, ElementsAre(2, 2));
}

// Four groups of one router with two free nodes each.
FabricModel Dragonfly(const std::vector<fabric::GlobalLink>& links) {
  FabricModel model = Tree({{2}, {2}, {2}, {2}});
  model.topology = fabric::FabricTopology::kDragonfly;
  model.levels = {"group", "router"};
  model.global_links = links;
  return model;
}

TEST(Solver, GroupsThatAreLinkedBestAmongEqualOnes) {
  const std::vector<fabric::GlobalLink> links = {{"sp0", "sp1", 100}, {"sp3", "sp1", 400}};
  EXPECT_THAT(LeavesOf(Dragonfly({}), MustSolve(Dragonfly({}), Gang(4)).node_of_rank),
              ElementsAre(0, 1));
  FabricModel model = Dragonfly(links);
  EXPECT_THAT(LeavesOf(model, MustSolve(model, Gang(4)).node_of_rank), ElementsAre(1, 3));
  // A tighter fit comes first, and a link that is there before none.
  model.nodes[5].unschedulable = "repair";  // group 2 has one node less
  EXPECT_THAT(LeavesOf(model, MustSolve(model, Gang(3)).node_of_rank), ElementsAre(0, 2));
  model = Dragonfly({{"sp2", "sp3", 1}});
  EXPECT_THAT(LeavesOf(model, MustSolve(model, Gang(4)).node_of_rank), ElementsAre(2, 3));
  // One group is enough: links do not matter.
  EXPECT_THAT(LeavesOf(model, MustSolve(model, Gang(2)).node_of_rank), ElementsAre(0));
}

TEST(Solver, InARingOnlyNeighbouringGroupsNeedLinks) {
  // Groups 0, 1, 2 form a line; 1, 2, 3 a triangle; and 0, 1, 2, 3 a ring without diagonals but
  // one.
  const FabricModel model = Dragonfly({{"sp0", "sp1", 9},
                                       {"sp1", "sp2", 9},
                                       {"sp2", "sp3", 9},
                                       {"sp1", "sp3", 5},
                                       {"sp0", "sp3", 9}});
  const Placement three = MustSolve(model, Gang(6));
  EXPECT_THAT(LeavesOf(model, three.node_of_rank), ElementsAre(0, 1, 3));
  EXPECT_EQ(QualityOf(model, Pattern::kRing, {0, 1, 2, 3}), (LinkQuality{0, 9}));
  EXPECT_EQ(QualityOf(model, Pattern::kAllToAll, {0, 1, 2, 3}), (LinkQuality{1, 5}));
}

TEST(Solver, ImpossibleRequestsAreRefused) {
  const FabricModel model = Tree({{2}});
  PlacementRequest request = Gang(0);
  EXPECT_THAT(Solve(model, request).status().message(), HasSubstr("spec.pods"));
  request = Gang(1, 0, 0);
  EXPECT_THAT(Solve(model, request).status().message(), HasSubstr("without GPUs and HCAs"));
  request = Gang(1);
  request.require_level = "rack";
  EXPECT_THAT(Solve(model, request).status().message(), HasSubstr("its levels are spine, leaf"));
  request = Gang(1);
  request.prefer_level = "rack";
  EXPECT_THAT(Solve(model, request).status().message(), HasSubstr("spec.preferLevel"));
  request = Gang(2);
  request.parallelism = {{"tp", 8}, {"dp", 3}};
  EXPECT_THAT(Solve(model, request).status().message(), HasSubstr("= 16"));
}

TEST(Solver, AnEmptyFabricHasNoRoom) {
  EXPECT_FALSE(MustSolve(Tree({}), Gang(1)).placed);
  EXPECT_FALSE(MustSolve(Tree({{}, {0, 0}}), Gang(1)).placed);
}

// What the answer is to be first in, computed without any cleverness: all sets of leaves.
struct Answer {
  std::vector<int> domains;
  bool different = false;  // not all pods get the same rails
  int64_t off = 0;         // pods on nodes of other kinds than most, if different
  int64_t left = 0;        // room left in the leaves
  std::vector<int> leaves;
  // Of each leaf, from the outermost level inwards: the room of its domain there, and the index.
  std::vector<std::vector<std::pair<int, int>>> order;

  auto key() const { return std::tie(domains, different, off, left); }
};

// The rails of the pods that fit on a node, one after the other: live ones that are free, lowest
// first, then live ones that are said to be in use.
std::vector<std::set<int>> RailsOfPods(const fabric::FabricNode& node,
                                       const PlacementRequest& request) {
  std::vector<int> rails;
  for (const bool used : {false, true}) {
    for (int rail = 0; rail < 64; ++rail) {
      if (std::count(node.dead_rails.begin(), node.dead_rails.end(), rail) > 0) continue;
      const bool in_use = std::count(node.used_rails.begin(), node.used_rails.end(), rail) > 0;
      if (in_use == used) rails.push_back(rail);
    }
  }
  std::vector<std::set<int>> pods;
  auto next = rails.begin();
  for (int pod = 0; pod < RoomOnNode(node, request).pods; ++pod) {
    if (node.shared_hcas) next = rails.begin();
    pods.emplace_back(next, next + request.hcas_per_pod);
    next += request.hcas_per_pod;
  }
  return pods;
}

std::vector<int> DomainsUsed(const FabricModel& model, const std::vector<int>& leaves) {
  std::vector<int> used(model.levels.size());
  std::set<int> domains(leaves.begin(), leaves.end());
  for (size_t level = used.size(); level-- > 0;) {
    used[level] = static_cast<int>(domains.size());
    std::set<int> outer;
    for (const int i : domains) outer.insert(model.domains[level][static_cast<size_t>(i)].parent);
    domains = outer;
  }
  return used;
}

std::optional<Answer> BruteForce(const FabricModel& model, const PlacementRequest& request) {
  const size_t count = model.domains.back().size();
  using RailSet = std::set<int>;
  // Of each leaf: room of nodes by the rails of their first pod, and pods that can get these rails.
  std::vector<std::map<RailSet, int>> rooms(count);
  std::vector<std::map<RailSet, int>> same(count);
  for (size_t leaf = 0; leaf < count; ++leaf) {
    const fabric::FabricDomain& domain = model.domains.back()[leaf];
    for (int i = domain.first; i < domain.first + domain.count; ++i) {
      const fabric::FabricNode& node = model.nodes[static_cast<size_t>(i)];
      const std::vector<RailSet> pods = RailsOfPods(node, request);
      if (pods.empty()) continue;
      rooms[leaf][pods[0]] += static_cast<int>(pods.size());
      const auto other = std::find_if(pods.begin(), pods.end(),
                                      [&](const RailSet& rails) { return rails != pods[0]; });
      same[leaf][pods[0]] += static_cast<int>(other - pods.begin());
    }
  }
  std::vector<std::vector<std::pair<int, int>>> order(count);
  for (size_t level = model.levels.size(); level-- > 0;) {
    std::map<int, int> room_of_domain;
    std::vector<int> domain_of_leaf(count);
    for (size_t leaf = 0; leaf < count; ++leaf) {
      int domain = static_cast<int>(leaf);
      for (size_t at = model.levels.size() - 1; at > level; --at) {
        domain = model.domains[at][static_cast<size_t>(domain)].parent;
      }
      domain_of_leaf[leaf] = domain;
      for (const auto& [rails, pods] : rooms[leaf]) room_of_domain[domain] += pods;
    }
    for (size_t leaf = 0; leaf < count; ++leaf) {
      const int domain = domain_of_leaf[leaf];
      const int room = level + 1 == model.levels.size() ? 0 : room_of_domain[domain];
      order[leaf].insert(order[leaf].begin(), {room, domain});
    }
  }
  std::optional<Answer> best;
  for (unsigned set = 1; set < (1U << count); ++set) {
    Answer answer;
    std::map<RailSet, int> room;
    std::map<RailSet, int> alike;
    int total = 0;
    for (size_t leaf = 0; leaf < count; ++leaf) {
      if ((set >> leaf & 1U) == 0) continue;
      answer.leaves.push_back(static_cast<int>(leaf));
      for (const auto& [rails, pods] : rooms[leaf]) {
        room[rails] += pods;
        total += pods;
      }
      for (const auto& [rails, pods] : same[leaf]) alike[rails] += pods;
    }
    if (total < request.pods) continue;
    answer.domains = DomainsUsed(model, answer.leaves);
    if (!request.require_level.empty() &&
        answer.domains[static_cast<size_t>(*fabric::LevelIndex(model, request.require_level))] >
            1) {
      continue;
    }
    int most = 0;
    for (const auto& [rails, pods] : room) most = std::max(most, pods);
    answer.off = std::max(0, request.pods - most);
    answer.different = std::none_of(alike.begin(), alike.end(), [&](const auto& entry) {
      return entry.second >= request.pods;
    });
    if (request.same_rails && answer.different) continue;
    answer.left = total - request.pods;
    // Of equal ones, the one that has the first leaf in which they differ.
    for (const int leaf : answer.leaves) answer.order.push_back(order[static_cast<size_t>(leaf)]);
    std::sort(answer.order.begin(), answer.order.end());
    if (!best || answer.key() < best->key() ||
        (answer.key() == best->key() && answer.order < best->order)) {
      best = answer;
    }
  }
  return best;
}

// Every pod has a node with room for it, and ranks are contiguous in each domain and node.
void ExpectValid(const FabricModel& model, const PlacementRequest& request,
                 const Placement& placement) {
  ASSERT_EQ(placement.node_of_rank.size(), static_cast<size_t>(request.pods));
  std::map<int, int> pods;
  for (const int node : placement.node_of_rank) ++pods[node];
  for (const auto& [node, count] : pods) {
    EXPECT_LE(count, RoomOnNode(model.nodes[static_cast<size_t>(node)], request).pods);
  }
  for (const std::vector<int>& domain_of_node : fabric::DomainsOfNodes(model)) {
    int changes = 0;
    std::set<int> domains;
    for (size_t rank = 0; rank < placement.node_of_rank.size(); ++rank) {
      const int domain = domain_of_node[static_cast<size_t>(placement.node_of_rank[rank])];
      if (rank > 0 &&
          domain != domain_of_node[static_cast<size_t>(placement.node_of_rank[rank - 1])]) {
        ++changes;
      }
      domains.insert(domain);
    }
    EXPECT_EQ(changes, static_cast<int>(domains.size()) - 1);
  }
}

Answer AnswerOf(const FabricModel& model, const PlacementRequest& request,
                const std::vector<int>& node_of_rank) {
  Answer answer;
  answer.leaves = LeavesOf(model, node_of_rank);
  answer.domains = DomainsUsed(model, answer.leaves);
  std::map<uint64_t, int> given;
  for (const int node : node_of_rank) {
    ++given[RailsOnNode(model.nodes[static_cast<size_t>(node)], request.hcas_per_pod)];
  }
  int most = 0;
  for (const auto& [rails, pods] : given) most = std::max(most, pods);
  answer.off = request.pods - most;
  std::map<int, size_t> pods_of_node;
  std::set<std::set<int>> all_rails;
  for (const int node : node_of_rank) {
    const auto pods = RailsOfPods(model.nodes[static_cast<size_t>(node)], request);
    all_rails.insert(pods.at(pods_of_node[node]++));
  }
  answer.different = all_rails.size() > 1;
  answer.left = -request.pods;
  for (const int leaf : answer.leaves) {
    const fabric::FabricDomain& domain = model.domains.back()[static_cast<size_t>(leaf)];
    for (int i = domain.first; i < domain.first + domain.count; ++i) {
      answer.left += RoomOnNode(model.nodes[static_cast<size_t>(i)], request).pods;
    }
  }
  return answer;
}

testing::Shape SmallShape(std::mt19937& random) {
  testing::Shape shape;
  switch (random() % 4) {
    case 0:
      shape.levels = {"leaf"};
      shape.fanout = {1 + static_cast<int>(random() % 8)};
      break;
    case 1:
      shape.levels = {"pod", "spine", "leaf"};
      shape.fanout = {1 + static_cast<int>(random() % 2), 1 + static_cast<int>(random() % 3),
                      1 + static_cast<int>(random() % 2)};
      break;
    default:
      shape.fanout = {1 + static_cast<int>(random() % 4), 1 + static_cast<int>(random() % 3)};
  }
  shape.nodes_per_leaf = 1 + static_cast<int>(random() % 5);
  shape.gpus = random() % 2 == 0 ? 4 : 8;
  shape.occupancy = 0.1 * static_cast<double>(random() % 8);
  shape.uneven = random() % 2 == 0;
  shape.unschedulable = random() % 2 == 0 ? 0.1 : 0;
  if (random() % 2 == 0) shape.partly_used = 0.6;
  shape.told_rails = random() % 2 == 0;
  if (random() % 2 == 0) shape.dead_rails = 0.4;
  return shape;
}

PlacementRequest SmallGang(const FabricModel& model, std::mt19937& random) {
  const int gpus = model.rails;
  const int per_pod[] = {gpus, gpus / 2, 1, gpus - 1};
  PlacementRequest request =
      Gang(1 + static_cast<int>(random() % 12), per_pod[random() % 4], per_pod[random() % 4]);
  if (random() % 5 == 0) request.gpus_per_pod = 0;
  if (random() % 5 == 0 && request.gpus_per_pod > 0) request.hcas_per_pod = 0;
  request.same_rails = random() % 4 == 0;
  if (random() % 3 == 0) request.require_level = model.levels[random() % model.levels.size()];
  return request;
}

// Lets pods share the HCAs of some nodes.
void ShareSome(FabricModel& model, std::mt19937& random) {
  for (fabric::FabricNode& node : model.nodes) {
    if (random() % 3 != 0) continue;
    node.shared_hcas = true;
    node.hcas *= 4;
    node.used_rails.clear();
  }
}

TEST(Solver, IsFirstAmongAllAnswers) {
  std::mt19937 random(1);
  int placed = 0;
  int mixed = 0;
  int refused = 0;
  int alike = 0;   // though that costs something
  int packed = 0;  // on nodes of one kind, with different rails
  int apart = 0;   // with the same rails, though there are others
  for (int round = 0; round < 6000; ++round) {
    FabricModel model = testing::RandomFabric(SmallShape(random), random);
    if (round % 4 == 0) ShareSome(model, random);
    const PlacementRequest request = SmallGang(model, random);
    const absl::StatusOr<Placement> placement = Solve(model, request);
    ASSERT_TRUE(placement.ok()) << placement.status();
    const std::optional<Answer> expected = BruteForce(model, request);
    const std::string context =
        absl::StrCat("round ", round, ": ", request.pods, " pods of ", request.gpus_per_pod,
                     " GPUs and ", request.hcas_per_pod, " HCAs, require ", request.require_level,
                     "\n", round < 100 ? fabric::ToJson(model).dump() : "");
    ASSERT_EQ(placement->placed, expected.has_value()) << context;
    if (!placement->placed) {
      ++refused;
      continue;
    }
    ++placed;
    ASSERT_NO_FATAL_FAILURE(ExpectValid(model, request, *placement)) << context;
    const Answer answer = AnswerOf(model, request, placement->node_of_rank);
    ASSERT_EQ(answer.domains, expected->domains) << context;
    ASSERT_EQ(answer.domains, placement->score.domains) << context;
    ASSERT_EQ(answer.different, expected->different) << context;
    ASSERT_EQ(answer.off, expected->off) << context;
    ASSERT_EQ(answer.left, expected->left) << context;
    std::set<std::set<int>> rails;
    for (const fabric::FabricNode& node : model.nodes) {
      for (const std::set<int>& pod : RailsOfPods(node, request)) rails.insert(pod);
    }
    // Among several sets of rails the order of the file comes after the choice of the rails.
    if (rails.size() == 1) {
      ASSERT_EQ(answer.leaves, expected->leaves) << context;
    }
    ASSERT_EQ(placement->score.rail_mismatches > 0, answer.different) << context;
    mixed += answer.off > 0 ? 1 : 0;
    packed += answer.different && answer.off == 0 ? 1 : 0;
    apart += !answer.different && rails.size() > 1 ? 1 : 0;
    if (request.same_rails) {
      PlacementRequest any = request;
      any.same_rails = false;
      alike += Solve(model, any)->score.domains != answer.domains ? 1 : 0;
    }
    // The same question has the same answer.
    ASSERT_EQ(*Solve(model, request), *placement);
  }
  EXPECT_GT(placed, 2000);
  EXPECT_GT(refused, 500);
  EXPECT_GT(mixed, 50);
  EXPECT_GT(alike, 10);
  EXPECT_GT(packed, 200);
  EXPECT_GT(apart, 200);
}

// Tries all numbers of pods on each node from `node` on. Calls `found` with the node of each rank.
void ForEachAnswer(const FabricModel& model, const PlacementRequest& request, size_t node,
                   std::vector<int>& node_of_rank,
                   const std::function<void(const std::vector<int>&)>& found) {
  const size_t before = node_of_rank.size();
  const auto all = static_cast<size_t>(request.pods);
  if (node == model.nodes.size() || before == all) {
    if (before == all) found(node_of_rank);
    return;
  }
  const auto room = static_cast<size_t>(RoomOnNode(model.nodes[node], request).pods);
  for (size_t pods = 0; pods <= std::min(room, all - before); ++pods) {
    node_of_rank.resize(before + pods, static_cast<int>(node));
    ForEachAnswer(model, request, node + 1, node_of_rank, found);
  }
  node_of_rank.resize(before);
}

// Compares with all answers, not with sets of leaves: pods of parts of nodes get the same rails as
// soon as any answer with as few domains gives them those, and with sameRails whenever one does.
TEST(Solver, PodsGetTheSameRailsIfAnyAnswerGivesThemThose) {
  std::mt19937 random(11);
  int same = 0;
  int different = 0;
  int impossible = 0;
  for (int round = 0; round < 1500; ++round) {
    testing::Shape shape;
    shape.fanout = {1 + static_cast<int>(random() % 2), 1 + static_cast<int>(random() % 2)};
    shape.nodes_per_leaf = 1 + static_cast<int>(random() % 3);
    shape.gpus = 4;
    shape.occupancy = 0;
    shape.partly_used = random() % 2 == 0 ? 0.5 : 0;
    shape.told_rails = random() % 2 == 0;
    shape.dead_rails = random() % 2 == 0 ? 0.3 : 0;
    FabricModel model = testing::RandomFabric(shape, random);
    if (random() % 4 == 0) ShareSome(model, random);
    PlacementRequest request =
        Gang(2 + static_cast<int>(random() % 4), random() % 2 == 0 ? 1 : 0, 1 << random() % 2);
    if (random() % 3 == 0) request.require_level = model.levels[random() % 2];
    std::optional<std::pair<std::vector<int>, bool>> best;  // domains; whether rails are different
    std::optional<std::vector<int>> best_alike;
    std::vector<int> node_of_rank;
    ForEachAnswer(model, request, 0, node_of_rank, [&](const std::vector<int>& nodes) {
      const Answer answer = AnswerOf(model, request, nodes);
      if (!request.require_level.empty() &&
          answer.domains[static_cast<size_t>(*fabric::LevelIndex(model, request.require_level))] >
              1) {
        return;
      }
      const std::pair key = {answer.domains, answer.different};
      if (!best || key < *best) best = key;
      if (!answer.different && (!best_alike || answer.domains < *best_alike)) {
        best_alike = answer.domains;
      }
    });
    const Placement any = MustSolve(model, request);
    ASSERT_EQ(any.placed, best.has_value()) << round;
    request.same_rails = true;
    const Placement alike = MustSolve(model, request);
    ASSERT_EQ(alike.placed, best_alike.has_value()) << round;
    if (alike.placed) {
      ASSERT_EQ(alike.score.domains, *best_alike) << round;
      ASSERT_EQ(alike.score.rail_mismatches, 0) << round;
      ASSERT_FALSE(AnswerOf(model, request, alike.node_of_rank).different) << round;
    }
    if (!any.placed) continue;
    ASSERT_EQ(any.score.domains, best->first) << round;
    ASSERT_EQ(any.score.rail_mismatches > 0, best->second) << round;
    ++(best->second ? different : same);
    impossible += alike.placed ? 0 : 1;
  }
  EXPECT_GT(same, 200);
  EXPECT_GT(different, 200);
  EXPECT_GT(impossible, 100);
}

// Among all sets of leaves that are equal otherwise, none is on better linked groups.
TEST(Solver, LinksAreBestAmongAllAnswers) {
  std::mt19937 random(7);
  int several = 0;
  for (int round = 0; round < 1500; ++round) {
    testing::Shape shape;
    shape.levels = {"group", "router"};
    shape.fanout = {2 + static_cast<int>(random() % 4), 1 + static_cast<int>(random() % 2)};
    shape.nodes_per_leaf = 1 + static_cast<int>(random() % 3);
    shape.occupancy = 0.1 * static_cast<double>(random() % 4);
    FabricModel model = testing::RandomFabric(shape, random);
    model.topology = fabric::FabricTopology::kDragonfly;
    const size_t groups = model.domains[0].size();
    for (size_t a = 0; a < groups; ++a) {
      for (size_t b = a + 1; b < groups; ++b) {
        if (random() % 3 == 0) continue;
        model.global_links.push_back({model.domains[0][a].name, model.domains[0][b].name,
                                      100.0 * (1 + static_cast<double>(random() % 4))});
      }
    }
    PlacementRequest request = Gang(1 + static_cast<int>(random() % 12));
    request.pattern = random() % 2 == 0 ? Pattern::kRing : Pattern::kAllToAll;
    const Placement placement = MustSolve(model, request);
    const std::optional<Answer> first = BruteForce(model, request);
    ASSERT_EQ(placement.placed, first.has_value());
    if (!placement.placed) continue;
    const Answer ours = AnswerOf(model, request, placement.node_of_rank);
    ASSERT_EQ(ours.key(), first->key());
    const auto quality_of = [&](const std::vector<int>& leaves) {
      std::set<int> used;
      for (const int leaf : leaves) {
        used.insert(model.domains[1][static_cast<size_t>(leaf)].parent);
      }
      return QualityOf(model, request.pattern, {used.begin(), used.end()});
    };
    const LinkQuality quality = quality_of(ours.leaves);
    if (ours.domains[0] > 1) ++several;
    for (unsigned set = 1; set < (1U << model.domains[1].size()); ++set) {
      std::vector<int> leaves;
      int64_t left = -request.pods;
      for (size_t leaf = 0; leaf < model.domains[1].size(); ++leaf) {
        if ((set >> leaf & 1U) == 0) continue;
        leaves.push_back(static_cast<int>(leaf));
        const fabric::FabricDomain& domain = model.domains[1][leaf];
        for (int i = domain.first; i < domain.first + domain.count; ++i) {
          left += RoomOnNode(model.nodes[static_cast<size_t>(i)], request).pods;
        }
      }
      if (left != ours.left || DomainsUsed(model, leaves) != ours.domains) continue;
      ASSERT_FALSE(Better(quality_of(leaves), quality)) << round;
    }
  }
  EXPECT_GT(several, 200);
}

TEST(Solver, FitsIsWhetherItIsPlaced) {
  int placed = 0;
  int left = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    testing::Shape shape;
    shape.fanout = {2, 2};
    shape.nodes_per_leaf = 3;
    shape.gpus = 4;
    shape.partly_used = 0.5;
    shape.told_rails = seed % 2 == 0;
    shape.dead_rails = 0.3;
    shape.unschedulable = 0.1;
    shape.uneven = true;
    const FabricModel model = testing::RandomFabric(shape, random);
    PlacementRequest request = Gang(1 + static_cast<int>(random() % 8), 0, 1 << random() % 3);
    request.same_rails = random() % 2 == 0;
    const char* const levels[] = {"", "spine", "leaf"};
    request.require_level = levels[random() % 3];
    const absl::StatusOr<bool> fits = Fits(model, request);
    ASSERT_TRUE(fits.ok()) << fits.status();
    EXPECT_EQ(*fits, MustSolve(model, request).placed) << "seed " << seed;
    ++(*fits ? placed : left);
  }
  EXPECT_GT(placed, 300);
  EXPECT_GT(left, 300);
  EXPECT_TRUE(absl::IsInvalidArgument(Fits(Tree({{1}}), Gang(0)).status()));
}

TEST(Solver, IsNeverWorseThanBestFit) {
  std::mt19937 random(2);
  int compared = 0;
  int better = 0;
  for (int round = 0; round < 2000; ++round) {
    testing::Shape shape;
    shape.fanout = {2 + static_cast<int>(random() % 7), 2 + static_cast<int>(random() % 7)};
    shape.occupancy = 0.1 * static_cast<double>(random() % 10);
    shape.partly_used = random() % 2 == 0 ? 0.3 : 0;
    const FabricModel model = testing::RandomFabric(shape, random);
    const PlacementRequest request =
        Gang(1 + static_cast<int>(random() % 100), random() % 2 == 0 ? 8 : 2, 2);
    const Placement placement = MustSolve(model, request);
    const std::vector<int> greedy = testing::BestFit(model, request);
    ASSERT_EQ(placement.placed, !greedy.empty());
    if (!placement.placed) continue;
    ++compared;
    const Answer ours = AnswerOf(model, request, placement.node_of_rank);
    const Answer theirs = AnswerOf(model, request, greedy);
    const Score score = ScoreOf(model, request, greedy);
    ASSERT_LE(ours.domains, theirs.domains);
    ASSERT_LE(ours.domains[0], theirs.domains[0]);
    ASSERT_LE(ours.domains[1], theirs.domains[1]);
    ASSERT_LE(placement.score.ring_crossings[0], score.ring_crossings[0]);
    ASSERT_LE(placement.score.ring_crossings[1], score.ring_crossings[1]);
    if (ours.domains == theirs.domains) {
      ASSERT_LE(ours.different, theirs.different);
      if (ours.different == theirs.different) {
        ASSERT_LE(ours.left, theirs.left);
      }
    }
    better += ours.domains < theirs.domains ? 1 : 0;
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(better, 100);
}

}  // namespace
}  // namespace railhead::placement
