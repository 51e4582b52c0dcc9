// SPDX-License-Identifier: Apache-2.0
#include "placement/reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fabric/model/fabric_model.h"
#include "placement/node_room.h"
#include "placement/solver.h"
#include "placement/testing/random_fabric.h"

namespace railhead::placement {
namespace {

using fabric::FabricModel;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two spines of one leaf of three nodes each.
FabricModel SixNodes() {
  FabricModel model;
  model.name = "six";
  model.levels = {"spine", "leaf"};
  model.rails = 8;
  model.domains = {{{"sp0", -1, 0, 1}, {"sp1", -1, 1, 1}}, {{"lf0", 0, 0, 3}, {"lf1", 1, 3, 3}}};
  for (int i = 0; i < 6; ++i) model.nodes.push_back({absl::StrCat("n", i), 8, 8, 0, 0, {}, ""});
  return model;
}

PlacementRequest GangOf(int pods, int gpus, int hcas, const std::string& level = "") {
  PlacementRequest request;
  request.pods = pods;
  request.gpus_per_pod = gpus;
  request.hcas_per_pod = hcas;
  request.require_level = level;
  return request;
}

std::vector<std::string> Messages(const FabricModel& model, const PlacementRequest& request) {
  const absl::StatusOr<std::vector<Reason>> reasons = WhyNotPlaced(model, request);
  EXPECT_TRUE(reasons.ok()) << reasons.status();
  std::vector<std::string> messages;
  for (const Reason& reason : *reasons) messages.push_back(reason.message);
  return messages;
}

TEST(WhyNotPlaced, SaysNothingWhenThereIsAPlace) {
  EXPECT_THAT(Messages(SixNodes(), GangOf(6, 8, 8)), IsEmpty());
}

TEST(WhyNotPlaced, CountsCausesAndFindsTheSmallestChanges) {
  FabricModel model = SixNodes();
  model.nodes[0].unschedulable = "taint maintenance";
  model.nodes[1].dead_rails = {3, 5};
  model.nodes[4].used_gpus = 6;
  EXPECT_THAT(
      Messages(model, GangOf(5, 8, 8)),
      ElementsAre(
          "1 of 6 nodes excluded: GPUs in use",
          "1 of 6 nodes excluded: dead rails: fewer HCAs alive than a pod requests",
          "1 of 6 nodes excluded: unschedulable: taint maintenance",
          "3 nodes take pods; fabric six has room for 3 of 5 pods",
          "fits if 2 nodes of fabric six are free: n0 (make schedulable: taint maintenance), n1 "
          "(repair rail 3, 5)",
          "fits with 3 pods instead of 5"));
}

TEST(WhyNotPlaced, LooksAtEachDomainOfTheRequiredLevel) {
  FabricModel model = SixNodes();
  model.nodes[0].used_gpus = 8;
  model.nodes[3].used_gpus = 8;
  model.nodes[4].used_gpus = 1;
  EXPECT_THAT(Messages(model, GangOf(3, 8, 0, "leaf")),
              ElementsAre("3 of 6 nodes excluded: GPUs in use",
                          "3 nodes take pods; the most room in one leaf is that of leaf lf0: 2 of "
                          "3 pods",
                          "fits if 1 node of leaf lf0 is free: n0 (drain: 8 of 8 GPUs in use)",
                          "fits with 2 pods instead of 3",
                          "fits without requireLevel instead of requireLevel: leaf"));
}

TEST(WhyNotPlaced, EqualRailsThatAreFreeOnTooFewNodes) {
  FabricModel model = SixNodes();
  for (const size_t node : {0, 1, 2}) {
    model.nodes[node].used_gpus = 4;
    model.nodes[node].used_hcas = 4;
    model.nodes[node].used_rails = {0, 1, 2, 3};
  }
  PlacementRequest request = GangOf(6, 4, 4);
  request.same_rails = true;
  model.nodes[5].used_rails = {0};
  model.nodes[5].used_hcas = 1;
  EXPECT_THAT(
      Messages(model, request),
      ElementsAre(
          "6 nodes take pods; fabric six has room for 3 of 6 pods on nodes that give the same "
          "rails",
          "fits if 4 nodes of fabric six are free: n0 (drain: 4 of 8 GPUs in use), n1 (drain: 4 of "
          "8 GPUs in use), n2 (drain: 4 of 8 GPUs in use), n5 (drain: 1 of 8 HCAs in use)",
          "fits with 3 pods instead of 6",
          "fits if pods may get different rails (without sameRails)"));
}

TEST(WhyNotPlaced, PromisesNothingThatCannotBe) {
  EXPECT_THAT(Messages(SixNodes(), GangOf(2, 9, 8)),
              ElementsAre("6 of 6 nodes excluded: fewer GPUs than a pod requests",
                          "0 nodes take pods; fabric six has room for 0 of 2 pods"));
}

// No smaller change of each kind would do, by trying all of them.
TEST(WhyNotPlaced, ChangesAreTheSmallest) {
  std::mt19937 random(3);
  int compared = 0;
  int by_rails = 0;
  for (int round = 0; round < 2000; ++round) {
    testing::Shape shape;
    shape.fanout = {1 + static_cast<int>(random() % 2), 1 + static_cast<int>(random() % 2)};
    shape.nodes_per_leaf = 1 + static_cast<int>(random() % 3);
    shape.occupancy = 0.5;
    shape.partly_used = 0.5;
    shape.unschedulable = 0.2;
    shape.dead_rails = 0.2;
    shape.told_rails = random() % 2 == 0;
    if (shape.told_rails) {
      shape.occupancy = 0;
      shape.partly_used = 0.7;
    }
    const FabricModel model = testing::RandomFabric(shape, random);
    PlacementRequest request = GangOf(1 + static_cast<int>(random() % 12), 4, 4);
    if (random() % 2 == 0) request.require_level = model.levels[random() % 2];
    request.same_rails = random() % 2 == 0;
    const absl::StatusOr<std::vector<Reason>> reasons = WhyNotPlaced(model, request);
    ASSERT_TRUE(reasons.ok()) << reasons.status();
    if (reasons->empty()) continue;
    size_t fewest = model.nodes.size() + 1;
    for (unsigned set = 0; set < (1U << model.nodes.size()); ++set) {
      FabricModel changed = model;
      for (size_t i = 0; i < model.nodes.size(); ++i) {
        if ((set >> i & 1U) == 0) continue;
        changed.nodes[i] = {
            model.nodes[i].name, model.nodes[i].gpus, model.nodes[i].hcas, 0, 0, {}, ""};
      }
      const auto size = static_cast<size_t>(__builtin_popcount(set));
      if (size < fewest && Solve(changed, request)->placed) fewest = size;
    }
    int pods = request.pods;
    for (bool placed = false; pods > 0 && !placed;) {
      PlacementRequest smaller = request;
      smaller.pods = --pods;
      placed = pods > 0 && Solve(model, smaller)->placed;
    }
    bool nodes_told = false;
    bool pods_told = false;
    bool rails_told = false;
    for (const Reason& reason : *reasons) {
      if (reason.what == "nodes") {
        nodes_told = true;
        EXPECT_EQ(static_cast<size_t>(reason.nodes), fewest);
      }
      rails_told = rails_told || reason.what == "sameRails";
      if (reason.what == "pods") {
        pods_told = true;
        EXPECT_TRUE(absl::StrContains(reason.message,
                                      absl::StrCat("with ", pods, pods == 1 ? " pod " : " pods ")))
            << reason.message << " but " << pods;
      }
    }
    EXPECT_EQ(nodes_told, fewest <= model.nodes.size());
    EXPECT_EQ(pods_told, pods > 0);
    PlacementRequest any = request;
    any.same_rails = false;
    EXPECT_EQ(rails_told, Solve(model, any)->placed);
    by_rails += rails_told ? 1 : 0;
    ++compared;
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(by_rails, 10);
}

}  // namespace
}  // namespace railhead::placement
