// SPDX-License-Identifier: Apache-2.0
//
// Hosts at switches above the leaves: subnet managers, login hosts, storage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/observations.h"
#include "fabric/testing/fusion_fixture.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HostsAbove : public FusionFixture {
 protected:
  // Leaves l0, l1, ... with a cable to each of the spines s0, s1, ...
  void Tree(int leaves, int spines) {
    for (int s = 0; s < spines; ++s) Switch(absl::StrCat("s", s));
    for (int l = 0; l < leaves; ++l) {
      const std::string leaf = absl::StrCat("l", l);
      Switch(leaf);
      for (int s = 0; s < spines; ++s) Uplink(leaf, absl::StrCat("s", s));
    }
  }
  void Hosts(const std::string& at, int count) {
    for (int i = 0; i < count; ++i) Link(absl::StrCat("n", hosts_++), "mlx5_0", at);
  }
  // Makes nodes of the cluster of all hosts: those called n... have GPUs and facts.
  void AllInKubernetes() {
    for (int i = 0; i < hosts_; ++i) Node(absl::StrCat("n", i), 1);
    for (const SeenDevice& device : seen_.devices) {
      if (device.kind == DeviceKind::kHost && device.name[0] != 'n') Node(device.name, 0).gpus = 0;
    }
  }

  int hosts_ = 0;
};

TEST_F(HostsAbove, OneAtEachSpineMakesNoLeafOfIt) {
  Tree(4, 2);
  for (int l = 0; l < 4; ++l) Hosts(absl::StrCat("l", l), 4);
  Link("ufm0", "mlx5_0", "s0");
  Link("ufm1", "mlx5_0", "s1");
  for (const bool kubernetes : {false, true}) {
    SCOPED_TRACE(kubernetes);
    if (kubernetes) AllInKubernetes();
    const DiscoveredFabric found = Fuse();
    ASSERT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
    EXPECT_EQ(found.model.domains[0].size(), 1);
    EXPECT_EQ(found.model.domains[1].size(), 4);
    EXPECT_EQ(found.model.nodes.size(), 16);
    EXPECT_THAT(found.switches[0][0], ElementsAre("s0", "s1"));
    const Finding& told = found.findings.back();
    EXPECT_EQ(told.check, kNoPlace);
    EXPECT_EQ(told.severity, Severity::kNote);
    EXPECT_THAT(FindingLine(told),
                HasSubstr("ufm0, ufm1: at s0, s1, above the leaves of other nodes"));
  }
}

TEST_F(HostsAbove, ManySpinesWithAHostAndLeavesWithFewerNodesThanSpines) {
  Tree(5, 8);
  for (int l = 0; l < 5; ++l) Hosts(absl::StrCat("l", l), l < 4 ? 4 : 1);
  for (int s = 0; s < 8; ++s) Link(absl::StrCat("h", s), "mlx5_0", absl::StrCat("s", s));
  const DiscoveredFabric found = Fuse();
  EXPECT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
  EXPECT_EQ(found.model.domains[1].size(), 5) << "a small leaf is a leaf";
  EXPECT_EQ(found.model.nodes.size(), 17);
}

TEST_F(HostsAbove, AtCores) {
  for (const char* name : {"a", "b", "c", "d", "s0", "s1", "s2", "s3", "core0", "core1"}) {
    Switch(name);
  }
  for (const char* spine : {"s0", "s1"}) {
    for (const char* leaf : {"a", "b"}) Uplink(leaf, spine);
  }
  for (const char* spine : {"s2", "s3"}) {
    for (const char* leaf : {"c", "d"}) Uplink(leaf, spine);
  }
  for (const char* core : {"core0", "core1"}) {
    for (int s = 0; s < 4; ++s) Uplink(absl::StrCat("s", s), core);
    Link(absl::StrCat("at-", core), "mlx5_0", core);
  }
  // Those of the second pod are few, and have a host at a spine.
  for (const char* leaf : {"a", "b"}) Hosts(leaf, 8);
  for (const char* leaf : {"c", "d"}) Hosts(leaf, 1);
  Link("login", "mlx5_0", "s2");
  for (const bool kubernetes : {false, true}) {
    SCOPED_TRACE(kubernetes);
    if (kubernetes) AllInKubernetes();
    const DiscoveredFabric found = Fuse();
    ASSERT_THAT(found.model.levels, ElementsAre("core", "spine", "leaf"));
    EXPECT_EQ(found.model.domains[0].size(), 1);
    EXPECT_EQ(found.model.domains[1].size(), 2);
    EXPECT_EQ(found.model.domains[2].size(), 4);
    EXPECT_EQ(found.model.nodes.size(), 18);
  }
}

TEST_F(HostsAbove, RailOptimized) {
  for (int r = 0; r < 4; ++r) {
    Switch(absl::StrCat("s", r));
    for (const char* leaf : {"a", "b"}) {
      Switch(absl::StrCat(leaf, r));
      Uplink(absl::StrCat(leaf, r), absl::StrCat("s", r));
    }
  }
  for (int i = 0; i < 8; ++i) {
    for (int r = 0; r < 4; ++r) {
      Link(absl::StrCat("n", i), absl::StrCat("mlx5_", r), absl::StrCat(i < 4 ? "a" : "b", r));
    }
  }
  Link("ufm", "ib0", "s0");
  const DiscoveredFabric found = Fuse();
  EXPECT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
  EXPECT_EQ(found.model.domains[1].size(), 2);
  EXPECT_EQ(found.model.nodes.size(), 8);
  EXPECT_EQ(found.model.rails, 4);
}

TEST_F(HostsAbove, NodesForJobsArePlacedWhereverTheyAre) {
  Tree(4, 1);
  for (int l = 0; l < 4; ++l) Hosts(absl::StrCat("l", l), 4);
  Hosts("s0", 1);
  AllInKubernetes();
  EXPECT_EQ(Fuse().model.nodes.size(), 17) << "it has GPUs";
}

TEST_F(HostsAbove, LeavesOfNodesWithoutGpusAreLeaves) {
  Tree(4, 2);
  for (int l = 0; l < 3; ++l) Hosts(absl::StrCat("l", l), 4);
  for (int i = 0; i < 4; ++i) Link(absl::StrCat("cpu", i), "mlx5_0", "l3");
  Link("login", "mlx5_0", "l0");
  AllInKubernetes();
  const DiscoveredFabric found = Fuse();
  EXPECT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
  EXPECT_EQ(found.model.domains[1].size(), 4);
  EXPECT_EQ(found.model.nodes.size(), 17);
}

// Each switch has nodes and is connected to others: none is above them, also if some have few.
TEST_F(HostsAbove, ADragonflyOrATorusHasNoneAbove) {
  for (int i = 0; i < 5; ++i) Switch(absl::StrCat("g", i));
  for (int a = 0; a < 5; ++a) {
    for (int b = 0; b < a; ++b) Uplink(absl::StrCat("g", a), absl::StrCat("g", b));
    Hosts(absl::StrCat("g", a), a == 2 ? 1 : 4);
  }
  DiscoveredFabric found = Fuse();
  EXPECT_THAT(found.model.levels, ElementsAre("leaf"));
  EXPECT_EQ(found.model.nodes.size(), 17);
  EXPECT_THAT(Names(found), ElementsAre("note cycle", "note no-facts"));

  seen_ = {};
  hosts_ = 0;
  const auto at = [](int x, int y) { return absl::StrCat("t", x % 4, "-", y % 4); };
  for (int x = 0; x < 4; ++x) {
    for (int y = 0; y < 4; ++y) {
      Switch(at(x, y));
      Uplink(at(x, y), at(x + 1, y));
      Uplink(at(x, y), at(x, y + 1));
      Hosts(at(x, y), x == 1 && y < 2 ? 1 : 4);
    }
  }
  found = Fuse();
  EXPECT_THAT(found.model.levels, ElementsAre("leaf"));
  EXPECT_EQ(found.model.domains[0].size(), 16);
}

}  // namespace
}  // namespace railhead::fabric
