// SPDX-License-Identifier: Apache-2.0
//
// What was built is what is found, whichever source tells it; and of what was built wrong, all is
// found and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/fusion.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/source.h"
#include "fabric/model/fabric_model.h"
#include "fabric/model/model_json.h"
#include "fabric/testing/built_fabric.h"

namespace railhead::fabric {
namespace {

constexpr int kFabrics = 60;

DiscoveredFabric Discover(std::vector<std::string> texts, std::mt19937& random) {
  std::shuffle(texts.begin(), texts.end(), random);
  Observations seen;
  for (const std::string& text : texts) {
    absl::StatusOr<Observations> more = ReadSource(text, "source");
    EXPECT_TRUE(more.ok()) << more.status();
    Append(*std::move(more), seen);
  }
  absl::StatusOr<DiscoveredFabric> found = FuseObservations(seen, "built");
  EXPECT_TRUE(found.ok()) << found.status();
  return *std::move(found);
}

void ExpectModel(const FabricModel& found, const FabricModel& built) {
  EXPECT_EQ(ToJson(found).dump(1), ToJson(built).dump(1));
}

std::vector<std::string> With(std::vector<std::string> texts, std::string more) {
  texts.push_back(std::move(more));
  return texts;
}

void ExpectNoTrouble(const DiscoveredFabric& found) {
  for (const Finding& finding : found.findings)
    EXPECT_EQ(finding.severity, Severity::kNote) << FindingLine(finding);
}

TEST(FusionProperty, WhatWasBuiltIsFoundFromEachSource) {
  std::mt19937 random(8);
  for (int i = 0; i < kFabrics; ++i) {
    SCOPED_TRACE(absl::StrCat("fabric ", i));
    BuiltFabric built = RandomFabric(random);
    if (i % 2 == 1) AddSmallerKind(built, random);
    if (i % 4 > 1) RenameNics(built, random);
    const std::string nodes = AsKubernetes(built, false, random);
    for (const std::vector<std::string>& texts :
         {std::vector<std::string>{AsIbnetdiscover(built, random), nodes},
          With(AsLldp(built, random), nodes),
          With(AsLldp(built, random), AsKubernetes(built, true, random))}) {
      const DiscoveredFabric found = Discover(texts, random);
      ExpectModel(found.model, built.model);
      EXPECT_TRUE(found.findings.empty()) << FindingLine(found.findings[0]);
      for (size_t n = 0; n < found.wires.size(); ++n) {
        for (const RailWire& wire : found.wires[n]) {
          EXPECT_EQ(wire.at, built.nodes[n].switches[static_cast<size_t>(wire.rail)]);
        }
      }
    }
    FabricModel by_labels = built.model;
    by_labels.topology = FabricTopology::kFatTree;  // labels do not say
    const DiscoveredFabric found = Discover({AsKubernetes(built, true, random)}, random);
    ExpectModel(found.model, by_labels);
    EXPECT_TRUE(found.findings.empty()) << FindingLine(found.findings[0]);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

TEST(FusionProperty, CablesAloneSayEverythingButGpus) {
  std::mt19937 random(9);
  for (int i = 0; i < kFabrics; ++i) {
    SCOPED_TRACE(absl::StrCat("fabric ", i));
    BuiltFabric built = RandomFabric(random);
    if (i % 2 == 1) AddSmallerKind(built, random);
    FabricModel no_gpus = built.model;
    for (FabricNode& node : no_gpus.nodes) node.gpus = 0;
    for (const std::vector<std::string>& texts :
         {std::vector<std::string>{AsIbnetdiscover(built, random)}, AsLldp(built, random)}) {
      const DiscoveredFabric found = Discover(texts, random);
      ExpectModel(found.model, no_gpus);
      ExpectNoTrouble(found);
    }
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

TEST(FusionProperty, SilentNodesAreLikeThoseOfTheirKind) {
  std::mt19937 random(11);
  size_t silent = 0;
  for (int i = 0; i < 2 * kFabrics; ++i) {
    SCOPED_TRACE(absl::StrCat("fabric ", i));
    BuiltFabric built = RandomFabric(random);
    RenameNics(built, random);
    const std::string nodes = AsKubernetes(built, false, random, true);
    for (const std::vector<std::string>& texts :
         {std::vector<std::string>{AsIbnetdiscover(built, random), nodes},
          With(AsLldp(built, random), nodes)}) {
      const DiscoveredFabric found = Discover(texts, random);
      ExpectModel(found.model, built.model);
      for (const Finding& finding : found.findings) {
        EXPECT_EQ(finding.check, kNoFacts) << FindingLine(finding);
        ++silent;
      }
    }
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(silent, 100);
}

// Node, rail, kind.
using Fault = std::tuple<std::string, int, std::string>;

// At most one node of a leaf, none in leaves with a dead rail: what is right is what most have.
std::set<Fault> Miswire(BuiltFabric& built, std::mt19937& random) {
  std::set<Fault> faults;
  const bool rail_optimized = built.model.topology == FabricTopology::kRailOptimized;
  const std::vector<FabricDomain>& leaves = built.model.domains.back();
  std::vector<BuiltNode> right = built.nodes;
  for (size_t l = 0; l < leaves.size(); ++l) {
    const auto first = built.nodes.begin() + leaves[l].first;
    const auto dead = [](const BuiltNode& node) {
      return std::count(node.switches.begin(), node.switches.end(), "") > 0;
    };
    if (random() % 2 == 0 || std::any_of(first, first + leaves[l].count, dead)) continue;
    // Of the larger kind, of which most nodes are right.
    BuiltNode& node = *(first + static_cast<int>(random() % 3));
    const size_t rails = node.switches.size();
    const size_t a = random() % rails;
    const size_t b = (a + 1 + random() % (rails - (rails > 1 ? 1 : 0))) % rails;
    if (rail_optimized && random() % 2 == 0 && a != b) {
      std::swap(node.switches[a], node.switches[b]);
      faults.emplace(node.name, static_cast<int>(a), kMiswired);
      faults.emplace(node.name, static_cast<int>(b), kMiswired);
    } else if (rails > 2) {
      const size_t other = (l + 1) % leaves.size();
      node.switches[a] = right[static_cast<size_t>(leaves[other].first)].switches[a];
      if (node.switches[a].empty()) {
        node.switches[a] = right[static_cast<size_t>(leaves[other].first) + 1].switches[a];
      }
      faults.emplace(node.name, static_cast<int>(a), kTwoLeaves);
    }
  }
  return faults;
}

TEST(FusionProperty, EachMiswiredCableIsFoundAndNothingElse) {
  std::mt19937 random(10);
  size_t all = 0;
  for (int i = 0; i < 2 * kFabrics; ++i) {
    SCOPED_TRACE(absl::StrCat("fabric ", i));
    BuiltFabric built = RandomFabric(random);
    if (i % 2 == 1) AddSmallerKind(built, random);
    if (i % 4 > 1) RenameNics(built, random);
    const std::set<Fault> faults = Miswire(built, random);
    all += faults.size();
    const std::string nodes = AsKubernetes(built, false, random);
    for (const std::vector<std::string>& texts :
         {std::vector<std::string>{AsIbnetdiscover(built, random), nodes},
          With(AsLldp(built, random), nodes)}) {
      const DiscoveredFabric found = Discover(texts, random);
      ExpectModel(found.model, built.model);
      std::set<Fault> told;
      for (const Finding& finding : found.findings) {
        int rail = -1;
        for (int r = 0; r < built.model.rails; ++r) {
          if (absl::StrContains(FindingLine(finding), absl::StrCat("(rail ", r, ")"))) rail = r;
        }
        EXPECT_TRUE(told.emplace(finding.object, rail, finding.check).second)
            << FindingLine(finding);
      }
      EXPECT_EQ(told, faults);
      size_t marked = 0;
      for (const std::vector<RailWire>& wires : found.wires) {
        for (const RailWire& wire : wires) marked += wire.miswired ? 1 : 0;
      }
      EXPECT_EQ(marked, faults.size());
    }
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(all, 200) << "hardly anything was miswired";
}

}  // namespace
}  // namespace railhead::fabric
