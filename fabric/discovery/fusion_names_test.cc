// SPDX-License-Identifier: Apache-2.0
//
// What domains that cables show are called: for people, and so that labels stay as they are when a
// fabric grows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/discovery/fusion.h"
#include "fabric/model/fabric_model.h"
#include "fabric/testing/fusion_fixture.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;

// Leaves and spines in the order in which they were put up, each with its pod. Pods are joined by
// cores where there are several.
struct Site {
  size_t rails = 1;  // switches of a leaf
  std::vector<size_t> leaves;
  std::vector<size_t> spines;
  size_t cores = 1;

  bool several_pods() const {
    for (const size_t pod : leaves) {
      if (pod > 0) return true;
    }
    return false;
  }
};

// (leaf, rail, rails)
using Naming = std::function<std::string(size_t, size_t, size_t)>;

class FusionNames : public FusionFixture {
 protected:
  void Build(const Site& site, const Naming& name) {
    seen_ = {};
    for (size_t s = 0; s < site.spines.size(); ++s) Switch(absl::StrCat("spine", s));
    for (size_t c = 0; c < site.cores && site.several_pods(); ++c) {
      Switch(absl::StrCat("core", c));
      for (size_t s = 0; s < site.spines.size(); ++s) {
        Uplink(absl::StrCat("spine", s), absl::StrCat("core", c));
      }
    }
    for (size_t l = 0; l < site.leaves.size(); ++l) {
      for (size_t r = 0; r < site.rails; ++r) {
        const std::string at = name(l, r, site.rails);
        Switch(at);
        for (size_t s = 0; s < site.spines.size(); ++s) {
          if (site.spines[s] == site.leaves[l]) Uplink(at, absl::StrCat("spine", s));
        }
        for (int n = 0; n < 2; ++n) {
          Link(absl::StrCat("n", l, "-", n), absl::StrCat("mlx5_", r), at);
        }
      }
    }
  }

  // Of each node its domain of each level, by the level's name.
  std::map<std::pair<std::string, std::string>, std::string> Places() {
    const FabricModel model = Fuse().model;
    std::map<std::pair<std::string, std::string>, std::string> places;
    const std::vector<std::vector<int>> domains = DomainsOfNodes(model);
    for (size_t level = 0; level < domains.size(); ++level) {
      for (size_t node = 0; node < model.nodes.size(); ++node) {
        places[{model.nodes[node].name, model.levels[level]}] =
            model.domains[level][static_cast<size_t>(domains[level][node])].name;
      }
    }
    return places;
  }

  std::vector<std::string> Leaves() {
    std::vector<std::string> names;
    const DiscoveredFabric found = Fuse();
    for (const FabricDomain& leaf : found.model.domains.back()) names.push_back(leaf.name);
    return names;
  }
};

std::string ByLeaf(size_t leaf, size_t rail, size_t /*rails*/) {
  return absl::StrCat("su", leaf, "-leaf", rail);
}
std::string Counted(size_t leaf, size_t rail, size_t rails) {
  return absl::StrCat("leaf", leaf * rails + rail + 1);
}
std::string CountedOnASite(size_t leaf, size_t rail, size_t rails) {
  return absl::StrCat("dc1-leaf", leaf * rails + rail + 1);
}
std::string RailFirst(size_t leaf, size_t rail, size_t /*rails*/) {
  return absl::StrCat("rail", rail, "-su", leaf);
}

TEST_F(FusionNames, LeavesAreCalledAfterTheirSwitches) {
  const Site site = {8, {0, 0, 0}, {0}, 0};
  Build(site, ByLeaf);
  EXPECT_THAT(Leaves(), ElementsAre("su0-leaf", "su1-leaf", "su2-leaf"));
  Build(site, Counted);
  EXPECT_THAT(Leaves(), ElementsAre("leaf1", "leaf9", "leaf17"));
  Build(site, CountedOnASite);
  EXPECT_THAT(Leaves(), ElementsAre("dc1-leaf", "dc1-leaf9", "dc1-leaf17"));
  Build(site, RailFirst);
  EXPECT_THAT(Leaves(), ElementsAre("rail0-su0", "rail0-su1", "rail0-su2"));
  Build({1, {0, 0, 0}, {0, 0}, 0}, ByLeaf);
  EXPECT_THAT(Leaves(), ElementsAre("su0-leaf0", "su1-leaf0", "su2-leaf0"));
}

// Numbers are not cut: leaf10 to leaf17 are not "leaf1".
TEST_F(FusionNames, ANumberIsInANameAsAWhole) {
  Build({8, {0, 0}, {0}, 0}, [](size_t leaf, size_t rail, size_t) {
    return absl::StrCat("su", leaf, "-leaf", 10 + rail);
  });
  EXPECT_THAT(Leaves(), ElementsAre("su0-leaf", "su1-leaf"));
}

TEST_F(FusionNames, ALeafIsNotCalledAsASwitchIs) {
  Build({2, {0}, {0}, 0}, ByLeaf);
  Switch("su0-leaf");
  Uplink("su0-leaf", "spine0");
  EXPECT_THAT(Leaves(), ElementsAre("su0-leaf0"));
}

TEST_F(FusionNames, WhatHasNothingAboveItIsCalledAfterWhatItHolds) {
  Build({2, {0, 0}, {}, 0}, ByLeaf);
  seen_.devices.push_back({"spine0", "spine0", DeviceKind::kSwitch});
  Uplink("su0-leaf0", "spine0");
  Uplink("su0-leaf1", "spine0");
  std::vector<std::string> spines;
  const DiscoveredFabric found = Fuse();
  for (const FabricDomain& domain : found.model.domains[0]) spines.push_back(domain.name);
  EXPECT_THAT(spines, ElementsAre("no-spine-su1-leaf", "spine0"));
}

TEST_F(FusionNames, WhatIsAddedRenamesNothingAndNamesSortAsTheyWerePutUp) {
  std::mt19937 random(12);
  for (int i = 0; i < 40; ++i) {
    for (const auto naming : {ByLeaf, Counted, CountedOnASite, RailFirst}) {
      Site site;
      site.rails = 1 + random() % 12;
      size_t pods = 1 + random() % 2;
      for (size_t pod = 0; pod < pods; ++pod) {
        for (size_t l = 0; l <= random() % 3; ++l) site.leaves.push_back(pod);
        for (size_t s = 0; s <= random() % 2; ++s) site.spines.push_back(pod);
      }
      Build(site, naming);
      const auto before = Places();
      if (random() % 2 == 0) {
        site.leaves.push_back(pods);
        site.leaves.push_back(pods);
        site.spines.push_back(pods++);
      }
      for (size_t l = 0; l < random() % 8; ++l) site.leaves.push_back(random() % pods);
      for (size_t s = 0; s < random() % 4; ++s) site.spines.push_back(random() % pods);
      site.cores += random() % 2;
      Build(site, naming);
      const auto after = Places();
      for (const auto& [where, name] : before) {
        EXPECT_EQ(after.at(where), name) << where.first << " " << where.second;
      }
      const std::vector<std::string> leaves = Leaves();
      for (size_t l = 0; l < site.leaves.size() && pods == 1; ++l) {
        EXPECT_EQ(after.at({absl::StrCat("n", l, "-0"), "leaf"}), leaves[l]);
      }
      ASSERT_FALSE(HasFailure());
    }
  }
}

}  // namespace
}  // namespace railhead::fabric
