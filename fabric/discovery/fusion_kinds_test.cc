// SPDX-License-Identifier: Apache-2.0
//
// Machines of several kinds in one fabric, nodes that tell nothing among others, and bonds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/fusion.h"
#include "fabric/discovery/observations.h"
#include "fabric/model/fabric_model.h"
#include "fabric/testing/fusion_fixture.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FusionKinds : public FusionFixture {
 protected:
  // Switches of the leaf, joined by a spine.
  void Leaf(const std::string& leaf, int switches) {
    if (seen_.devices.empty()) Switch("sp");
    for (int i = 0; i < switches; ++i) {
      Switch(absl::StrCat(leaf, i));
      Uplink(absl::StrCat(leaf, i), "sp");
    }
  }
  // NIC i of the node is at the switch places[i] of the leaf; -1: no cable is seen.
  void Cables(const std::string& node, const std::string& prefix, const std::string& leaf,
              const std::vector<int>& places, Evidence evidence = Evidence::kInfiniBand) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] < 0) continue;
      Link(node, absl::StrCat(prefix, i), absl::StrCat(leaf, places[i]), evidence);
    }
  }
  static const FabricNode& NodeOf(const DiscoveredFabric& found, const std::string& name) {
    for (const FabricNode& node : found.model.nodes) {
      if (node.name == name) return node;
    }
    ADD_FAILURE() << "no node " << name;
    return found.model.nodes[0];
  }
};

TEST_F(FusionKinds, RailsOfAnotherKindOfMachineAreNotCompared) {
  Leaf("l", 8);
  for (int i = 0; i < 2; ++i) {
    Node(absl::StrCat("big", i), 8);
    Cables(absl::StrCat("big", i), "mlx5_", "l", {0, 1, 2, 3, 4, 5, 6, 7});
  }
  for (int i = 0; i < 4; ++i) {
    Node(absl::StrCat("small", i), 4);
    Cables(absl::StrCat("small", i), "mlx5_", "l", {0, 2, 4, 6});
  }
  DiscoveredFabric found = Fuse();
  EXPECT_THAT(found.findings, IsEmpty());
  EXPECT_THAT(found.model.domains[1], SizeIs(1))
      << "though half of a large node's cables are alike";
  EXPECT_EQ(found.model.rails, 8);
  EXPECT_EQ(NodeOf(found, "small0").hcas, 4);
  EXPECT_THAT(found.switches[1][0], ElementsAre("l0", "l2", "l4", "l6", "l4", "l5", "l6", "l7"))
      << "of most of its nodes, and what only others have";

  Node("small4", 4);
  Cables("small4", "mlx5_", "l", {0, 4, 2, 6});
  found = Fuse();
  EXPECT_THAT(Names(found), ElementsAre("miswired", "miswired"));
  EXPECT_EQ(found.findings[0].object, "small4");
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr(", where other nodes have rail 2; most nodes of its leaf have "
                        "rail 1 at l2"));
}

TEST_F(FusionKinds, ANodeThatLostANicIsToldAndNotItsCables) {
  Leaf("l", 4);
  for (int i = 0; i < 3; ++i) {
    Node(absl::StrCat("n", i), 4);
    Cables(absl::StrCat("n", i), "mlx5_", "l", {0, 1, 2, 3});
  }
  Node("n3", 3);
  Cables("n3", "mlx5_", "l", {0, 2, 3});
  DiscoveredFabric found = Fuse();
  ASSERT_THAT(Names(found), ElementsAre("contradiction"));
  EXPECT_THAT(
      FindingLine(found.findings[0]),
      HasSubstr("n3: no other node has its NICs, and its rails (3) are at other switches "
                "than those of its neighbours (4): rail 1 is at l2 as rail 2 of others, and "
                "1 more"));
  Node("n4", 2);  // less than a lost NIC or two
  Cables("n4", "mlx5_", "l", {1, 3});
  found = Fuse();
  EXPECT_THAT(Names(found), ElementsAre("contradiction", "note contradiction"));
}

TEST_F(FusionKinds, StorageIsAtOtherPositionsOnOtherMachines) {
  for (const char* prefix : {"f", "e"}) {  // with names of its own, and with the same ones
    seen_ = {};
    Leaf("l", 1);
    Switch("storage0");
    for (int i = 0; i < 3; ++i) {
      Cables(absl::StrCat("a", i), "e", "l", {0, 0, 0, 0, -1});
      Cables(absl::StrCat("a", i), "e", "storage", {-1, -1, -1, -1, 0});
      Cables(absl::StrCat("b", i), prefix, "l", {-1, 0, 0, 0, 0});
      Cables(absl::StrCat("b", i), prefix, "storage", {0});
    }
    const DiscoveredFabric found = Fuse();
    EXPECT_EQ(found.model.rails, 4);
    for (const FabricNode& node : found.model.nodes) {
      EXPECT_EQ(node.hcas, 4);
      EXPECT_THAT(node.dead_rails, IsEmpty()) << node.name;
    }
    for (const std::vector<RailWire>& wires : found.wires) {
      for (const RailWire& wire : wires) EXPECT_EQ(wire.at, "l0") << wire.nic;
    }
    EXPECT_THAT(Names(found), ElementsAre("note storage", "note storage", "note no-facts"));
  }
}

TEST_F(FusionKinds, StorageAtSeveralSwitchesIsToldWithTheirNumber) {
  Leaf("l", 1);
  Switch("storage-spine");
  for (int i = 0; i < 3; ++i) {
    Switch(absl::StrCat("storage", i));
    Uplink(absl::StrCat("storage", i), "storage-spine");
    const std::string name = absl::StrCat("n", i);
    Node(name, 4);
    Cables(name, "mlx5_", "l", {0, 0, 0});
    Cables(name, "mlx5_", "storage", {-1, -1, -1, i});
  }
  const DiscoveredFabric found = Fuse();
  ASSERT_EQ(Names(found)[0], "storage");
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("rail 3: is at storage0 and 2 more, a network"));
}

TEST_F(FusionKinds, StorageThatAgentsOfferIsToldOfEachKind) {
  Leaf("l", 1);
  Switch("storage0");
  for (int i = 0; i < 3; ++i) {
    Node(absl::StrCat("a", i), 4);
    Cables(absl::StrCat("a", i), "mlx5_", "l", {0, 0, 0});
    Cables(absl::StrCat("a", i), "mlx5_", "storage", {-1, -1, -1, 0});
    Node(absl::StrCat("b", i), 5);
    Cables(absl::StrCat("b", i), "mlx5_", "l", {-1, 0, 0, 0, 0});
    Cables(absl::StrCat("b", i), "mlx5_", "storage", {0});
  }
  const DiscoveredFabric found = Fuse();
  ASSERT_THAT(Names(found), ElementsAre("storage", "storage"));
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("rail 0 of 3 nodes such as b0: is at storage0"));
  EXPECT_THAT(FindingLine(found.findings[1]),
              HasSubstr("rail 3 of 3 nodes such as a0: is at storage0"));
}

TEST_F(FusionKinds, ASilentNodeHasTheRailsOfTheSameMachines) {
  Leaf("l", 4);
  for (int i = 0; i < 3; ++i) {
    const std::string name = absl::StrCat("n", i);
    SeenNode& node = Node(name, i < 2 ? 4 : 0);
    for (int r = 0; i < 2 && r < 4; ++r) {  // the agent counts by slots, and names go by age
      ChangeRail(node, r, [r](SeenRail& rail) { rail.netdev = absl::StrCat("eth", 3 - r); });
    }
    Cables(name, "eth", "l", {3, 2, 1, 0}, Evidence::kLldp);
    Link(name, "eth9", "l0", Evidence::kLldp);
  }
  Node("n3", 0);
  Cables("n3", "eth", "l", {-1, 2, 1, 0}, Evidence::kLldp);
  const DiscoveredFabric found = Fuse();
  EXPECT_THAT(Names(found), ElementsAre("no-facts"));
  EXPECT_EQ(found.model.rails, 4) << "eth9 is no rail, as the others say";
  for (const std::vector<RailWire>& wires : found.wires) {
    ASSERT_THAT(wires, SizeIs(4));
    for (const RailWire& wire : wires) {
      EXPECT_EQ(wire.nic, absl::StrCat("mlx5_", wire.rail));
      EXPECT_TRUE(wire.dead || wire.at == absl::StrCat("l", wire.rail)) << wire.at;
    }
  }
  EXPECT_THAT(found.model.nodes[3].dead_rails, ElementsAre(3)) << "eth0 is missing";
}

TEST_F(FusionKinds, ANicOfTheOnlyMachineThatTellsIsNotDeadOnTheOthers) {
  Leaf("l", 4);
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("n", i);
    Node(name, i == 0 ? 5 : 0);
    Cables(name, "mlx5_", "l", {0, 1, 2, 3});
  }
  Link("n0", "mlx5_4", "l0");
  const DiscoveredFabric found = Fuse();
  for (const FabricNode& node : found.model.nodes) EXPECT_THAT(node.dead_rails, IsEmpty());
  EXPECT_EQ(NodeOf(found, "n0").hcas, 5);
  EXPECT_EQ(NodeOf(found, "n1").hcas, 4);
}

TEST_F(FusionKinds, SilentNodesThatAreWiredOtherwiseAreOfAnotherKind) {
  for (const bool spine : {true, false}) {
    seen_ = {};
    Leaf("l", 4);
    Leaf("m", 4);
    for (const char* at : {"storage0", "storage1"}) Switch(at);
    if (spine) {
      Switch("storage-spine");
      for (const char* at : {"storage0", "storage1"}) Uplink(at, "storage-spine");
    }
    for (int i = 0; i < 3; ++i) {
      Node(absl::StrCat("told", i), 4);
      Cables(absl::StrCat("told", i), "mlx5_", "l", {0, 1, 2, 3, -1});
      Cables(absl::StrCat("told", i), "mlx5_", "storage", {-1, -1, -1, -1, 0});
      // The same names, and storage's NIC comes first.
      Node(absl::StrCat("silent", i), 0);
      Cables(absl::StrCat("silent", i), "mlx5_", "m", {-1, 0, 1, 2, 3});
      Cables(absl::StrCat("silent", i), "mlx5_", "storage", {1});
    }
    const DiscoveredFabric found = Fuse();
    ASSERT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
    ASSERT_THAT(found.switches[1], SizeIs(2));
    EXPECT_THAT(found.switches[1][0], ElementsAre("l0", "l1", "l2", "l3"));
    EXPECT_THAT(found.switches[1][1], ElementsAre("m0", "m1", "m2", "m3"));
    EXPECT_THAT(found.model.domains[0], SizeIs(1)) << "storage's switches are no part of it";
  }
}

TEST_F(FusionKinds, StorageThatAgentsOfferIsToldThoughOnlySilentNodesShowIt) {
  Leaf("l", 1);
  Switch("storage0");
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("n", i);
    Node(name, i < 2 ? 4 : 0);
    Cables(name, "mlx5_", "l", {0, 0, 0});
    if (i >= 2) Cables(name, "mlx5_", "storage", {-1, -1, -1, 0});
  }
  const DiscoveredFabric found = Fuse();
  ASSERT_EQ(Names(found)[0], "storage");
  EXPECT_THAT(FindingLine(found.findings[0]), HasSubstr("rail 3: is at storage0"));
}

TEST_F(FusionKinds, ASmallerKindIsNoBrokenLargerOne) {
  Leaf("l", 8);
  Leaf("m", 8);
  for (int i = 0; i < 3; ++i) {
    Cables(absl::StrCat("big", i), "e", "l", {0, 1, 2, 3, 4, 5, 6, 7});
    Cables(absl::StrCat("half", i), "e", "m", {0, 2, -1, -1, 4, 6});  // slots of their own
    // The switch of rail 3 is down: as many NICs as on no other kind, and not numbered anew.
    Cables(absl::StrCat("lame", i), "e", "m", {0, 1, 2, -1, 4, 5, 6, 7});
    // Six of eight, and their cables say that they are others.
    Cables(absl::StrCat("six", i), "e", "l", {0, -1, 1, 2, 3, 4, -1, 5});
  }
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(NodeOf(found, "half0").hcas, 4);
  EXPECT_THAT(NodeOf(found, "half0").dead_rails, IsEmpty());
  EXPECT_EQ(NodeOf(found, "lame0").hcas, 8);
  EXPECT_THAT(NodeOf(found, "lame0").dead_rails, ElementsAre(3));
  EXPECT_EQ(NodeOf(found, "six0").hcas, 6);
  EXPECT_THAT(NodeOf(found, "six0").dead_rails, IsEmpty());
  EXPECT_THAT(found.model.domains[1], SizeIs(2));
  EXPECT_THAT(Names(found), ElementsAre("note no-facts"));
}

TEST_F(FusionKinds, ANicThatOneNodeHasBesideTheOthersIsNoRail) {
  for (const bool first : {false, true}) {  // by its name, which must not number the others anew
    seen_ = {};
    Leaf("l", 4);
    Leaf("m", 4);
    for (int i = 0; i < 8; ++i) {
      Cables(absl::StrCat("n", i), "e", i < 4 ? "l" : "m", {0, 1, 2, 3});
    }
    Link("n1", first ? "a0" : "e4", "l0");
    const DiscoveredFabric found = Fuse();
    EXPECT_EQ(found.model.rails, 4);
    for (size_t n = 0; n < 8; ++n) {
      EXPECT_EQ(found.model.nodes[n].hcas, 4);
      EXPECT_THAT(found.model.nodes[n].dead_rails, IsEmpty()) << found.model.nodes[n].name;
      for (const RailWire& wire : found.wires[n]) EXPECT_EQ(wire.nic, absl::StrCat("e", wire.rail));
    }
    ASSERT_THAT(Names(found), ElementsAre("note storage", "note no-facts"));
    EXPECT_THAT(FindingLine(found.findings[0]),
                HasSubstr("n1: no other machine of its kind has a NIC named "));
  }
}

TEST_F(FusionKinds, MostMachinesOfALeafSayWhichNicsThereAre) {
  Leaf("l", 4);
  for (int i = 0; i < 6; ++i) Cables(absl::StrCat("n", i), "e", "l", {0, 1, 2, 3});
  for (const char* name : {"n0", "n1"}) Link(name, "e4", "l0");
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(NodeOf(found, "n0").hcas, 5) << "two are a kind of their own";
  for (const FabricNode& node : found.model.nodes) EXPECT_THAT(node.dead_rails, IsEmpty());
}

TEST_F(FusionKinds, ALoneMachineThatIsWiredOtherwiseHasRailsOfItsOwn) {
  Leaf("l", 1);
  Switch("storage0");
  for (int i = 0; i < 4; ++i) Cables(absl::StrCat("n", i), "e", "l", {0, 0, 0, 0});
  Cables("odd", "e", "l", {-1, 0, 0, 0, 0});  // storage's NIC comes first
  Cables("odd", "e", "storage", {0});
  const DiscoveredFabric found = Fuse();
  for (const FabricNode& node : found.model.nodes) {
    EXPECT_EQ(node.hcas, node.name == "odd" ? 5 : 4) << node.name;
    EXPECT_THAT(node.dead_rails, IsEmpty()) << node.name;
  }
  for (const Finding& finding : found.findings)
    EXPECT_EQ(finding.severity, Severity::kNote) << FindingLine(finding);
}

TEST_F(FusionKinds, ManyOddMachinesDoNotHideTheKindOfMost) {
  Leaf("l", 4);
  for (int i = 0; i < 80; ++i) {
    Cables(absl::StrCat("n", i), "e", "l", {0, 1, 2, 3});
    Cables(absl::StrCat("odd", i), "e", "l", {0, 1, 2, 3});
    Link(absl::StrCat("odd", i), absl::StrCat("x", i), "l0");
  }
  Cables("wrong", "e", "l", {1, 0, 2, 3});
  Cables("lame", "e", "l", {0, 1, -1, 3});
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 4);
  EXPECT_THAT(NodeOf(found, "lame").dead_rails, ElementsAre(2));
  EXPECT_THAT(NodeOf(found, "odd7").dead_rails, IsEmpty());
  ASSERT_GE(found.findings.size(), 2);
  EXPECT_EQ(found.findings[0].check, kMiswired);
  EXPECT_EQ(found.findings[0].object, "wrong");
}

class FusionBonds : public FusionKinds {
 protected:
  // Bonds of two slaves over the pair of switches of each rail: rail r at leaf (2r) and (2r + 1).
  void Bonds(const std::string& name, const std::string& leaf, bool reversed) {
    SeenNode& node = Node(name, 2);
    for (int r = 0; r < 2; ++r) {
      ChangeRail(node, r, [&](SeenRail& rail) {
        rail.device = absl::StrCat("mlx5_bond_", r);
        rail.netdev = absl::StrCat("bond", r);
        rail.slaves = {absl::StrCat("e", 2 * r), absl::StrCat("e", 2 * r + 1)};
        if (reversed) std::swap(rail.slaves[0], rail.slaves[1]);
      });
    }
    places_[name] = {leaf, {0, 1, 2, 3}};
  }
  DiscoveredFabric FuseBonds() {
    seen_.links.clear();
    for (const char* leaf : {"a", "b"}) {
      for (int i = 0; i < 4; ++i) Uplink(absl::StrCat(leaf, i), "sp");
    }
    for (const auto& [name, place] : places_) {
      Cables(name, "e", place.first, place.second, Evidence::kLldp);
    }
    for (const auto& [node, nic, at] : more_) Link(node, nic, at, Evidence::kLldp);
    return Fuse();
  }

  std::map<std::string, std::pair<std::string, std::vector<int>>> places_;
  std::vector<std::tuple<std::string, std::string, std::string>> more_;
};

TEST_F(FusionBonds, AllSlavesCountInAnyOrder) {
  Leaf("a", 4);
  Leaf("b", 4);
  for (int i = 0; i < 8; ++i) Bonds(absl::StrCat("n", i), i < 4 ? "a" : "b", i % 2 == 1);
  DiscoveredFabric found = FuseBonds();
  EXPECT_THAT(found.findings, IsEmpty());
  ASSERT_THAT(found.model.domains[1], SizeIs(2));
  EXPECT_EQ(found.wires[1][0].at, "a0") << "whatever the order";

  // Where the first slave's cable is not seen, the second is still right.
  places_["n1"].second = {-1, 1, 2, 3};
  found = FuseBonds();
  EXPECT_THAT(found.findings, IsEmpty());
  EXPECT_EQ(found.wires[1][0].at, "a1");

  // In two leaves, by the second slave.
  places_["n1"].second = {0, -1, 2, 3};
  more_ = {{"n1", "e1", "b1"}};
  found = FuseBonds();
  ASSERT_THAT(Names(found), ElementsAre("two-leaves"));
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("n1: e1 of bond mlx5_bond_0 (rail 0) is at b1 port "));
  EXPECT_TRUE(found.wires[1][0].miswired);
  EXPECT_FALSE(found.wires[1][1].miswired);

  // Second slaves of two rails exchanged.
  more_.clear();
  places_["n1"].second = {0, 3, 2, 1};
  found = FuseBonds();
  ASSERT_THAT(Names(found), ElementsAre("miswired", "miswired"));
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("n1: e1 of bond mlx5_bond_0 (rail 0) is at a3"));
}

}  // namespace
}  // namespace railhead::fabric
