// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/finding.h"
#include "fabric/discovery/observations.h"
#include "fabric/testing/fusion_fixture.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Fusion = FusionFixture;

TEST_F(Fusion, InfiniBandIsBelievedBeforeLldp) {
  Switch("a");
  Switch("b");
  Node("n0", 1);
  Link("n0", "mlx5_0", "b", Evidence::kLldp);
  Link("n0", "mlx5_0", "a");
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.wires[0][0].at, "a");
  ASSERT_THAT(Names(found), ElementsAre("contradiction"));
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("n0: mlx5_0 is at a according to the subnet "
                        "(f:1), and at b according to the node's LLDP"));
}

TEST_F(Fusion, StorageThatAgentsOfferForComputeIsTold) {
  for (const char* name : {"a0", "a1", "st", "sp"}) Switch(name);
  Uplink("a0", "sp");
  Uplink("a1", "sp");
  for (const char* name : {"n0", "n1", "n2"}) {
    ChangeRail(Node(name, 3), 2, [](SeenRail& rail) { rail.gbps = 100; });
    Link(name, "mlx5_0", "a0");
    Link(name, "mlx5_1", "a1");
    Link(name, "mlx5_2", "st", Evidence::kInfiniBand, 100);
  }
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 3) << "what pods are given is a rail";
  ASSERT_THAT(Names(found), ElementsAre("storage"));
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("rail 2: is at st, a network without the other"));
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("runs at 100 Gbit/s, and the others at 400"));
}

TEST_F(Fusion, WithoutFactsNicsOfAnotherNetworkAreNoRails) {
  for (const char* name : {"a0", "a1", "mgmt", "sp"}) Switch(name);
  Uplink("a0", "sp");
  Uplink("a1", "sp");
  for (const char* name : {"n0", "n1", "n2"}) {
    Link(name, "eth0", "mgmt", Evidence::kLldp);
    Link(name, "ens1", "a0", Evidence::kLldp);
    Link(name, "ens2", "a1", Evidence::kLldp);
  }
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 2);
  EXPECT_EQ(found.wires[0][0].nic, "ens1");
  EXPECT_THAT(Names(found), ElementsAre("note storage", "note no-facts"));
  EXPECT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
}

TEST_F(Fusion, ManagementSwitchesAreNoPartOfTheTree) {
  for (const char* name : {"a", "b", "mgmt", "s0", "s1"}) Switch(name);
  Uplink("a", "s0");
  Uplink("b", "s1");
  for (const char* name : {"a", "b", "s0", "s1"}) Uplink("mgmt", name);
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("n", i);
    Node(name, 2);
    for (int r = 0; r < 2; ++r) Link(name, absl::StrCat("mlx5_", r), i < 2 ? "a" : "b");
    Link(name, "eth0", "mgmt", Evidence::kLldp, 1);
  }
  Node("n4", 0);
  Link("n4", "ens1", "b", Evidence::kLldp);
  Link("n4", "eth0", "mgmt", Evidence::kLldp, 1);
  Node("n5", 2);
  Link("n5", "mlx5_0", "b", Evidence::kLldp);
  Link("n5", "mlx5_1", "mgmt", Evidence::kLldp);
  DiscoveredFabric found = Fuse();
  EXPECT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
  ASSERT_EQ(found.model.domains[0].size(), 2);
  EXPECT_EQ(found.model.domains[0][0].name, "s0");
  EXPECT_EQ(found.model.domains[0][1].name, "s1");
  EXPECT_EQ(found.model.nodes[4].hcas, 1) << "eth0 is no rail without facts either";
  EXPECT_THAT(Names(found), ElementsAre("miswired", "no-facts", "note storage"));
  EXPECT_THAT(FindingLine(found.findings[0]), HasSubstr("n5: mlx5_1 (rail 1) is at mgmt"));
  EXPECT_THAT(FindingLine(found.findings[2]),
              HasSubstr("mgmt: 4 of the 5 nodes with a cable at it have "
                        "no rail there (but NICs such as eth0 of n0)"));

  // Nothing but that was seen of a node's NICs: no leaf is made of it.
  seen_ = {};
  Switch("a");
  Switch("mgmt");
  for (const char* name : {"n0", "n1", "n2"}) {
    ChangeRail(Node(name, 1), 0, [](SeenRail& rail) { rail.netdev = "ens1"; });
  }
  Link("n0", "ens1", "a", Evidence::kLldp);
  Link("n1", "ens1", "a", Evidence::kLldp);
  Link("n2", "eth0", "mgmt", Evidence::kLldp);
  found = Fuse();
  EXPECT_EQ(found.model.nodes.size(), 2);
  EXPECT_EQ(found.model.domains[0].size(), 1);
  EXPECT_THAT(Names(found), ElementsAre("no-place"));
}

TEST_F(Fusion, SwitchesThatCarryComputeAndStorageAreLeaves) {
  for (const char* name : {"a0", "a1", "b0", "b1", "sp"}) Switch(name);
  for (const char* name : {"a0", "a1", "b0", "b1"}) Uplink(name, "sp");
  for (int i = 0; i < 6; ++i) {
    const std::string name = absl::StrCat("n", i);
    SeenNode& node = Node(name, 2);
    for (int r = 0; r < 2; ++r) {
      const std::string at = absl::StrCat(i < 3 ? "a" : "b", r);
      ChangeRail(node, r, [r](SeenRail& rail) { rail.netdev = absl::StrCat("ens", r); });
      Link(name, absl::StrCat("ens", r), at, Evidence::kLldp);
      for (int s = 0; s < 3; ++s) Link(name, absl::StrCat("sto", r, s), at, Evidence::kLldp);
    }
  }
  const DiscoveredFabric found = Fuse();
  EXPECT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
  ASSERT_EQ(found.model.domains[0].size(), 1) << "the leaves' way to the spine is left";
  EXPECT_EQ(found.model.domains[0][0].name, "sp");
  EXPECT_EQ(found.model.rails, 2);
  EXPECT_THAT(found.findings, IsEmpty());
}

TEST_F(Fusion, WithoutAMajorityNothingIsCalledWrong) {
  for (const char* name : {"a0", "a1"}) Switch(name);
  for (const char* name : {"n0", "n1"}) {
    Node(name, 2);
    const bool first = name == std::string("n0");
    Link(name, "mlx5_0", first ? "a0" : "a1");
    Link(name, "mlx5_1", first ? "a1" : "a0");
  }
  DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.domains[0].size(), 1) << "they share their switches";
  ASSERT_THAT(Names(found), ElementsAre("contradiction", "contradiction"));
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("rail 0: nodes of one leaf have it at several switches"));
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("n0 at a0, n1 at a1; so no cable is reported as wrong"));
  EXPECT_FALSE(found.wires[1][0].miswired);
  Node("n2", 2);
  Link("n2", "mlx5_0", "a0");
  Link("n2", "mlx5_1", "a1");
  found = Fuse();
  EXPECT_THAT(Names(found), ElementsAre("miswired", "miswired"));
  EXPECT_TRUE(found.wires[1][0].miswired);
}

TEST_F(Fusion, TheLargestOfSeveralNetworksIsNoMajority) {
  for (const char* name : {"a", "p2", "p3", "p4"}) Switch(name);
  for (const char* name : {"n0", "n1"}) {
    Link(name, "e0", "a");
    Link(name, "e1", "a");
    for (int r = 2; r < 4; ++r) Link(name, absl::StrCat("e", r), absl::StrCat("p", r));
  }
  DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 4) << "planes, of which one carries two rails";
  ASSERT_THAT(Names(found), ElementsAre("note storage", "note no-facts"));
  EXPECT_THAT(FindingLine(found.findings[0]), HasSubstr("it is not clear which are for storage"));
  for (const char* name : {"n0", "n1"}) Link(name, "e5", "a");
  found = Fuse();
  EXPECT_EQ(found.model.rails, 3) << "three of five are most";
}

TEST_F(Fusion, AMissingNicRenumbersNoOther) {
  for (int r = 0; r < 4; ++r) Switch(absl::StrCat("l", r));
  const auto cables = [&](const std::string& name, int first, int missing) {
    for (int r = 0; r < 4; ++r) {
      if (r != missing) Link(name, absl::StrCat("mlx5_", first + r), absl::StrCat("l", r));
    }
  };
  for (const char* name : {"n0", "n1"}) cables(name, 0, -1);
  for (const char* name : {"n2", "n3"}) cables(name, 4, -1);
  cables("n4", 0, 0);
  cables("n5", 4, 1);
  cables("n6", 2, 2);  // of no kind that another has, or with a NIC that another has not
  DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 4);
  EXPECT_THAT(found.model.nodes[4].dead_rails, ElementsAre(0));
  EXPECT_THAT(found.model.nodes[5].dead_rails, ElementsAre(1));
  ASSERT_EQ(found.wires[6].size(), 3);
  EXPECT_THAT(found.model.nodes[6].dead_rails, IsEmpty()) << "nobody knows";
  EXPECT_EQ(found.wires[6][2].nic, "mlx5_5");
  EXPECT_EQ(found.wires[6][2].rail, 3) << "it is at the switch of rail 3";
  EXPECT_THAT(Names(found), ElementsAre("note no-facts", "note no-facts"));
  EXPECT_THAT(FindingLine(found.findings[1]), HasSubstr("n6: some NICs may be missing"));

  Switch("storage");
  for (int r = 1; r < 4; ++r) Uplink("l0", absl::StrCat("l", r));
  for (int i = 0; i < 7; ++i) Link(absl::StrCat("n", i), "a", "storage");
  found = Fuse();
  EXPECT_EQ(found.model.rails, 4);
  EXPECT_EQ(found.wires[6].size(), 3) << "its storage NIC is left out as well";
  EXPECT_EQ(found.wires[6][2].nic, "mlx5_5");

  seen_ = {};
  for (int r = 0; r < 4; ++r) Switch(absl::StrCat("l", r));
  cables("n0", 0, 0);
  cables("n1", 0, 1);
  cables("n2", 0, 2);
  found = Fuse();
  EXPECT_EQ(found.model.domains[0].size(), 1);
  EXPECT_THAT(Names(found), ElementsAre("note no-facts", "note no-facts")) << "none is miswired";
}

TEST_F(Fusion, PortsOfAnHcaAreItsCablesOrRailsAsAgentsSay) {
  for (const char* name : {"a", "b"}) Switch(name);
  for (const char* name : {"n0", "n1"}) {
    ChangeRail(Node(name, 1), 0, [](SeenRail& rail) { rail.port = 2; });
    Link(name, "mlx5_0", "a");
    Link(name, "mlx5_0:2", "b");
  }
  DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 1);
  EXPECT_EQ(found.wires[0][0].at, "b") << "the port that carries data";
  for (SeenNode& node : seen_.nodes) {
    node.rails->Change([](std::vector<SeenRail>& rails) {
      rails.push_back({1, "mlx5_0", "", 400, true, "", 1, {}});
    });
  }
  found = Fuse();
  EXPECT_EQ(found.model.rails, 2);
  EXPECT_EQ(found.wires[0][0].at, "b");
  EXPECT_EQ(found.wires[0][1].at, "a");
  seen_.nodes.clear();
  found = Fuse();
  EXPECT_EQ(found.model.rails, 1) << "without facts an HCA is one rail";
  EXPECT_EQ(found.wires[0][0].nic, "mlx5_0");
  EXPECT_EQ(found.wires[0][0].at, "a");
}

TEST_F(Fusion, SlavesOfABondAreCablesOfOneRail) {
  for (const char* name : {"a0", "a1", "b0", "b1", "sp"}) Switch(name);
  for (const char* name : {"a0", "a1", "b0", "b1"}) Uplink(name, "sp");
  Uplink("a0", "a1");  // pairs that serve bonds together
  Uplink("b0", "b1");
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("n", i);
    ChangeRail(Node(name, 1), 0, [](SeenRail& rail) {
      rail.device = "mlx5_bond_0";
      rail.netdev = "bond0";
      rail.slaves = {"ens1f0", "ens1f1"};
    });
    Link(name, "ens1f0", i < 2 ? "a0" : "b0", Evidence::kLldp);
    Link(name, "ens1f1", i < 2 ? "a1" : "b1", Evidence::kLldp);
  }
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 1);
  EXPECT_EQ(found.model.topology, FabricTopology::kFatTree);
  EXPECT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
  EXPECT_EQ(found.model.domains[0].size(), 1);
  EXPECT_EQ(found.model.domains[0][0].name, "sp") << "a1 is no spine";
  ASSERT_EQ(found.model.domains[1].size(), 2);
  EXPECT_EQ(found.model.domains[1][0].name, "a0");
  EXPECT_THAT(Names(found), ElementsAre("note cycle"));
}

TEST_F(Fusion, ASwitchForSecondPortsOfAllLeavesJoinsNone) {
  for (const char* name : {"a", "b", "c", "d", "s0", "s1", "core", "second"}) Switch(name);
  for (const char* leaf : {"a", "b"}) Uplink(leaf, "s0");
  for (const char* leaf : {"c", "d"}) Uplink(leaf, "s1");
  for (const char* spine : {"s0", "s1"}) Uplink(spine, "core");
  for (int i = 0; i < 8; ++i) {
    const std::string name = absl::StrCat("n", i);
    Node(name, 1);
    Link(name, "mlx5_0", std::string(1, static_cast<char>('a' + i / 2)));
    Link(name, "mlx5_0:2", "second");
  }
  const DiscoveredFabric found = Fuse();
  EXPECT_THAT(found.model.levels, ElementsAre("core", "spine", "leaf"));
  EXPECT_EQ(found.model.domains[1].size(), 2);
  EXPECT_EQ(found.model.domains[2].size(), 4);
}

TEST_F(Fusion, AManagementPortThatLldpSeesHidesNoDescribedHca) {
  for (const char* name : {"a", "management"}) Switch(name);
  for (const char* name : {"n0", "n1"}) {
    Node(name, 2);
    for (const char* hca : {"HCA-1", "HCA-2"}) Link(name, hca, "a");
    Link(name, "eno1", "management", Evidence::kLldp);
  }
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 2);
  EXPECT_EQ(found.wires[1][1].at, "a");
}

TEST_F(Fusion, HostsOfOneNameGiveTheOthersNoRails) {
  Switch("a");
  for (const char* name : {"n0", "n1"}) {
    for (int r = 0; r < 2; ++r) Link(name, absl::StrCat("e", r), "a");
  }
  for (int r = 0; r < 100; ++r) Link("node", absl::StrCat("e", r), "a");
  DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 2);
  EXPECT_EQ(found.model.nodes[2].hcas, 2);
  EXPECT_THAT(Names(found), ElementsAre("contradiction", "note no-facts"));
  EXPECT_THAT(FindingLine(found.findings[0]), HasSubstr("node: has 100 NICs with cables"));
  EXPECT_THAT(FindingLine(found.findings[0]), HasSubstr("98 of its NICs are ignored"));
  for (int r = 2; r < 70; ++r) {
    for (const char* name : {"n0", "n1"}) Link(name, absl::StrCat("e", r), "a");
  }
  found = Fuse();
  EXPECT_EQ(found.model.rails, 64);
  EXPECT_EQ(found.findings.size(), 4);
}

TEST_F(Fusion, PlanesWithoutASpineAreAllRails) {
  for (int r = 0; r < 3; ++r) Switch(absl::StrCat("plane", r));
  for (const char* name : {"n0", "n1"}) {
    for (int r = 0; r < 3; ++r) Link(name, absl::StrCat("e", r), absl::StrCat("plane", r));
  }
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 3);
  EXPECT_THAT(found.model.levels, ElementsAre("leaf"));
  EXPECT_EQ(found.model.domains[0][0].name, "plane0");
}

TEST_F(Fusion, CablesAreBelievedBeforeLabels) {
  for (const char* name : {"a", "b", "sp"}) Switch(name);
  Uplink("a", "sp");
  Uplink("b", "sp");
  for (int i = 0; i < 6; ++i) {
    const std::string name = absl::StrCat("n", i);
    Label(Node(name, 1), {"s", i < 3 || i == 5 ? "l0" : "l1"});
    Link(name, "mlx5_0", i < 3 ? "a" : "b");
  }
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.domains[1][1].count, 3);
  ASSERT_THAT(Names(found), ElementsAre("contradiction"));
  EXPECT_EQ(found.findings[0].object, "n5");
  EXPECT_THAT(FindingLine(found.findings[0]), HasSubstr("labels say leaf l0 where those of its"));
}

TEST_F(Fusion, LabelsPlaceWhoHasNoCableInSight) {
  Switch("a");
  Switch("b");
  for (int i = 0; i < 4; ++i) {
    Label(Node(absl::StrCat("n", i), 1), {"s", i < 2 ? "l0" : "l1"});
    Link(absl::StrCat("n", i), "mlx5_0", i < 2 ? "a" : "b");
  }
  Label(Node("n4", 1), {"s", "l1"});
  Node("n5", 1);
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.domains[0][1].count, 3);
  EXPECT_EQ(found.model.nodes.back().name, "n4");
  ASSERT_THAT(Names(found), ElementsAre("no-place"));
  EXPECT_THAT(FindingLine(found.findings[0]), HasSubstr("n5: neither a cable nor a label"));
}

TEST_F(Fusion, ARailThatIsUpWithoutACableInSightIsTold) {
  Switch("a");
  for (const char* name : {"n0", "n1"}) {
    Node(name, 2);
    Link(name, "mlx5_0", "a");
  }
  Link("n0", "mlx5_1", "a");
  const DiscoveredFabric found = Fuse();
  ASSERT_THAT(Names(found), ElementsAre("contradiction"));
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("n1: rail 1 (mlx5_1) is up according to its node agent"));
  EXPECT_THAT(found.model.nodes[1].dead_rails, IsEmpty());
}

TEST_F(Fusion, LabelsThatContradictOneAnotherAreTold) {
  Label(Node("n0", 1), {"s0", "l0"});
  Label(Node("n1", 1), {"s0", "l0"});
  Label(Node("n2", 1), {"s1", "l0"});
  Label(Node("n3", 1), {"l0", "s0"});
  Label(Node("n4", 1), {"x", "x"});
  Label(Node("n5", 1), {"s0"});
  const DiscoveredFabric found = Fuse();
  EXPECT_THAT(Names(found), ElementsAre("contradiction", "cycle", "cycle", "no-place", "no-place"));
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("n2: Topograph's labels say that leaf l0 lies in s1"));
  EXPECT_EQ(found.model.domains[1][1].count, 3) << "n2 is where most nodes say";
  EXPECT_EQ(found.model.domains[1].back().name, "x-leaf");
}

TEST_F(Fusion, ValuesThatAreUniqueInsideTheirParentAreDomainsOfTheirOwn) {
  const auto node = [&](const std::string& spine, const std::string& leaf) {
    Label(Node(absl::StrCat("n", seen_.nodes.size()), 1), {spine, leaf});
  };
  for (const char* spine : {"s0", "s10", "s2"}) {
    for (int leaf = 0; leaf < 3; ++leaf) {
      for (int i = 0; i < 4; ++i) node(spine, absl::StrCat("l", leaf));
    }
  }
  DiscoveredFabric found = Fuse();
  EXPECT_THAT(found.findings, IsEmpty());
  const auto names = [](const DiscoveredFabric& fabric) {
    std::vector<std::string> leaves;
    for (const FabricDomain& leaf : fabric.model.domains[1]) leaves.push_back(leaf.name);
    return leaves;
  };
  EXPECT_THAT(names(found), ElementsAre("l0", "l1", "l2", "s2-l0", "s2-l1", "s2-l2", "s10-l0",
                                        "s10-l1", "s10-l2"));
  for (const FabricDomain& leaf : found.model.domains[1]) EXPECT_EQ(leaf.count, 4) << leaf.name;

  // A small one is a leaf too, as all the others are there several times.
  node("s11", "l0");
  found = Fuse();
  EXPECT_THAT(found.findings, IsEmpty());
  EXPECT_EQ(found.model.domains[1].back().name, "s11-l0");

  // One value that is there twice, by nodes of its own in each.
  seen_ = {};
  for (int i = 0; i < 4; ++i) node("s0", "a");
  for (int i = 0; i < 4; ++i) node("s0", "b");
  for (int i = 0; i < 4; ++i) node("s1", "c");
  for (int i = 0; i < 2; ++i) node("s1", "a");
  found = Fuse();
  EXPECT_THAT(found.findings, IsEmpty());
  EXPECT_THAT(names(found), ElementsAre("a", "b", "c", "s1-a"));
}

TEST_F(Fusion, ZonesContradictNobody) {
  for (const char* name : {"a", "b", "sp"}) Switch(name);
  Uplink("a", "sp");
  Uplink("b", "sp");
  for (int i = 0; i < 10; ++i) {
    const std::string name = absl::StrCat("n", i);
    SeenNode& node = Node(name, 1);
    // By power feed: most of a leaf on one, some on the other.
    node.places = {{"Kubernetes", {{"zone", i % 5 < 3 ? "feed-a" : "feed-b"}}}};
    if (i < 9) Link(name, "mlx5_0", i < 5 ? "a" : "b");
  }
  DiscoveredFabric found = Fuse();
  ASSERT_THAT(Names(found), ElementsAre("no-place")) << "nor do they place a node in a leaf";
  EXPECT_THAT(FindingLine(found.findings[0]), HasSubstr("n9: neither a cable nor a label"));
  for (SeenNode& node : seen_.nodes) {
    node.places.push_back({"Topograph", {{"leaf", node.name < "n5" ? "l0" : "l1"}}});
  }
  found = Fuse();
  EXPECT_THAT(found.findings, IsEmpty()) << "nor do they contradict other labels";
}

TEST_F(Fusion, NamesOfAnotherKindOfMachineSayNothingOfItsRails) {
  for (const char* name : {"a", "b", "c", "d", "mgmt", "sp"}) Switch(name);
  for (const char* name : {"a", "b", "c", "d"}) Uplink(name, "sp");
  for (int i = 0; i < 3; ++i) {
    const std::string told = absl::StrCat("told", i);
    ChangeRail(Node(told, 1), 0, [](SeenRail& rail) { rail.netdev = "ens1"; });
    Link(told, "ens1", "a", Evidence::kLldp);
    Link(told, "eno1", "mgmt", Evidence::kLldp, 1);
    // Its compute NICs are called as the others' management ports are.
    const std::string silent = absl::StrCat("silent", i);
    Node(silent, 0);
    Link(silent, "eno1", "b", Evidence::kLldp);
    Link(silent, "eno2", "c", Evidence::kLldp);
    Link(silent, "eno3", "d", Evidence::kLldp);
  }
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 3);
  for (const FabricNode& node : found.model.nodes) {
    EXPECT_EQ(node.hcas, node.name[0] == 's' ? 3 : 1) << node.name;
  }
}

TEST_F(Fusion, TheSchemeThatMostNodesHaveCounts) {
  const auto place = [](SeenNode& node, const char* scheme, std::vector<std::string> values) {
    SeenPlace named = {scheme, {}};
    const std::vector<std::string> levels = {scheme == std::string("AWS") ? "layer-2" : "spine",
                                             scheme == std::string("AWS") ? "layer-3" : "leaf"};
    for (size_t i = 0; i < values.size(); ++i) named.levels.emplace_back(levels[i], values[i]);
    node.places.push_back(named);
  };
  // One node was tried with labels of its own, all others have the cloud's.
  for (int i = 0; i < 6; ++i) {
    SeenNode& node = Node(absl::StrCat("n", i), 1);
    if (i == 5) place(node, "Railhead", {"mine", "own"});
    place(node, "AWS", {"l2", i < 3 ? "x" : "y"});
    node.places.push_back({"Kubernetes", {{"region", "r"}, {"zone", "z"}}});
  }
  for (int i = 0; i < 9; ++i) {  // the control plane has no say
    SeenNode& control = Node(absl::StrCat("c", i), 0);
    control.gpus = 0;
    control.places.push_back({"Kubernetes", {{"region", "r"}, {"zone", "z"}}});
  }
  DiscoveredFabric found = Fuse();
  EXPECT_THAT(found.model.levels, ElementsAre("layer-2", "layer-3"));
  EXPECT_EQ(found.model.nodes.size(), 6);
  EXPECT_THAT(found.findings, IsEmpty()) << "its labels are silent, or lie in the others'";

  // Labels that divide less far say nothing against it, those that cross do.
  for (int i = 0; i < 6; ++i) place(seen_.nodes[static_cast<size_t>(i)], "NVIDIA", {"s", "all"});
  EXPECT_THAT(Fuse().findings, IsEmpty());
  for (int i = 0; i < 6; ++i) {
    seen_.nodes[static_cast<size_t>(i)].places.back().levels[1].second = i < 4 ? "u" : "v";
  }
  found = Fuse();
  ASSERT_THAT(Names(found), ElementsAre("contradiction"));
  EXPECT_THAT(found.model.levels, ElementsAre("spine", "leaf")) << "NVIDIA's know more";
  EXPECT_EQ(found.findings[0].object, "n3");
  EXPECT_THAT(FindingLine(found.findings[0]), HasSubstr("AWS's labels contradict those of NVIDIA: "
                                                        "layer-3 y and leaf u share these nodes, "
                                                        "and neither"));

  // Whoever has other labels alone is not placed by them.
  seen_.nodes[0].places.pop_back();
  found = Fuse();
  EXPECT_EQ(found.model.nodes.size(), 5);
  EXPECT_THAT(Names(found), ElementsAre("contradiction", "no-place", "note no-place"));
  EXPECT_THAT(FindingLine(found.findings[2]),
              HasSubstr("n0: no labels of NVIDIA, which more nodes"));
}

TEST_F(Fusion, LevelsAreThoseThatMostNodesInTheFabricHave) {
  for (int i = 0; i < 8; ++i) {
    Node(absl::StrCat("n", i), 1).places = {{"Kubernetes", {{"zone", i < 4 ? "za" : "zb"}}}};
  }
  SeenNode& control = Node("control", 0);
  control.gpus = 0;
  control.places = {{"Kubernetes", {{"region", "r"}, {"zone", "za"}}}};
  SeenNode& more = seen_.nodes[0];
  more.places[0].levels.insert(more.places[0].levels.begin(), {"region", "r"});
  DiscoveredFabric found = Fuse();
  EXPECT_THAT(found.model.levels, ElementsAre("zone"));
  EXPECT_THAT(found.findings, IsEmpty());
  EXPECT_EQ(found.model.domains[0].size(), 2);

  for (int i : {0, 1, 2, 3, 4, 5}) {
    seen_.nodes[static_cast<size_t>(i)].places = {{"Kubernetes", {{"region", "r"}, {"zone", "z"}}}};
  }
  found = Fuse();
  EXPECT_THAT(found.model.levels, ElementsAre("region", "zone"));
  ASSERT_FALSE(found.findings.empty());
  EXPECT_THAT(
      FindingLine(found.findings[0]),
      HasSubstr("n6, n7: some labels of Kubernetes are missing (most nodes have region, zone)"));
}

TEST_F(Fusion, LoopsAndCablesBetweenLeavesAreTold) {
  for (const char* name : {"a", "b", "sp"}) Switch(name);
  Uplink("a", "sp");
  Uplink("b", "sp");
  Uplink("a", "b");
  Uplink("sp", "sp");
  Link("n0", "e0", "a");
  Link("n1", "e0", "b");
  const DiscoveredFabric found = Fuse();
  EXPECT_THAT(Names(found), ElementsAre("cycle", "note cycle", "note no-facts"));
  EXPECT_EQ(found.findings[0].object, "sp");
  EXPECT_THAT(FindingLine(found.findings[1]), HasSubstr("a and b"));
  EXPECT_THAT(found.model.levels, ElementsAre("spine", "leaf"));
}

TEST_F(Fusion, EmptyLeavesAndThoseOfStorageAreNoCores) {
  for (const char* name : {"a", "b", "empty", "sp"}) Switch(name);
  for (const char* leaf : {"a", "b", "empty"}) Uplink(leaf, "sp");
  Link("n0", "e0", "a");
  Link("n1", "e0", "b");
  EXPECT_THAT(Fuse().model.levels, ElementsAre("spine", "leaf"));
}

TEST_F(Fusion, NodesWithoutFactsAreTold) {
  Switch("a");
  Node("n0", 1);
  Node("n1", 0).gpus = 4;
  Node("control", 0).gpus = 0;
  Link("n0", "mlx5_0", "a");
  Link("n1", "mlx5_0", "a");
  Link("nas", "eth0", "a");
  seen_.uses = {{"n0", 3, 1}, {"n0", 2, 5}};
  const DiscoveredFabric found = Fuse();
  ASSERT_EQ(found.model.nodes.size(), 2);
  EXPECT_EQ(found.model.nodes[0].used_gpus, 5);
  EXPECT_EQ(found.model.nodes[0].used_hcas, 1) << "no more than there are";
  EXPECT_EQ(found.model.nodes[1].gpus, 4);
  EXPECT_THAT(Names(found), ElementsAre("no-facts", "note no-place"));
  EXPECT_THAT(FindingLine(found.findings[0]), HasSubstr("n1: no facts of a node agent"));
  EXPECT_THAT(FindingLine(found.findings[1]), HasSubstr("nas: not a node of the cluster"));
}

TEST_F(Fusion, HcasThatKubernetesOffersAreRailsOfNodesWithoutCables) {
  Switch("a");
  Label(Node("n0", 0), {"s", "l0"});
  Link("n0", "mlx5_0", "a");
  seen_.nodes[0].hcas = 6;
  EXPECT_EQ(Fuse().model.rails, 1) << "its cables say which NICs it has";
  Label(Node("n1", 0), {"s", "l0"});
  seen_.nodes[1].hcas = 4;
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 4);
  EXPECT_EQ(found.model.nodes[0].hcas, 1);
  EXPECT_EQ(found.model.nodes[1].hcas, 4);
  EXPECT_THAT(found.switches.back(), ElementsAre(ElementsAre("a", "", "", "")));
}

TEST_F(Fusion, SharesAreNoHcasAndTakeNone) {
  Switch("a");
  for (int i = 0; i < 2; ++i) {
    const std::string name = absl::StrCat("n", i);
    SeenNode& node = Node(name, 4);
    node.hcas = 24;  // six for each
    Label(node, {"s", "l0"});
    for (int r = 0; r < 4; ++r) Link(name, absl::StrCat("mlx5_", r), "a");
  }
  ChangeRail(seen_.nodes[1], 3, [](SeenRail& rail) { rail.usable = false; });
  for (const auto& [name, offered] : {std::pair("n2", 24), {"n3", 64}, {"n4", 500'000}}) {
    Label(Node(name, 0), {"s", "l0"});
    seen_.nodes.back().hcas = offered;
  }
  seen_.uses = {{"n0", 0, 12}, {"n0", 0, 4}, {"n1", 0, 22}, {"n2", 0, 24}, {"n4", 0, 400'000}};
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.rails, 4) << "24 and 64 are no numbers of rails";
  ASSERT_EQ(found.model.nodes.size(), 5);
  for (const FabricNode& node : found.model.nodes) EXPECT_EQ(node.hcas, 4) << node.name;
  EXPECT_EQ(found.model.nodes[0].used_hcas, 0) << "8 shares are left, for a pod that asks for 4";
  EXPECT_EQ(found.model.nodes[1].used_hcas, 1) << "2 shares are left, and 3 HCAs are alive";
  EXPECT_EQ(found.model.nodes[2].used_hcas, 4);
  EXPECT_EQ(found.model.nodes[4].used_hcas, 0);
}

TEST_F(Fusion, ControlPlanesAreNoPartOfAFabric) {
  Switch("a");
  for (const char* name : {"n0", "n1"}) {
    Label(Node(name, 1), {"s", "l0"});
    Link(name, "mlx5_0", "a");
  }
  SeenNode& control = Node("control", 0);
  control.gpus = 0;
  Label(control, {"s", "l0"});
  DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.nodes.size(), 2);
  EXPECT_THAT(found.findings, IsEmpty());
  seen_.links.clear();
  found = Fuse();
  EXPECT_EQ(found.model.nodes.size(), 2) << "by labels alone";
  EXPECT_THAT(found.findings, IsEmpty());
}

TEST_F(Fusion, FactsThatCannotBeReadAreTold) {
  Switch("a");
  Node("n0", 1);
  Node("n1", 0).facts_fault = "n1:1: version: is missing";
  for (const char* name : {"n0", "n1"}) Link(name, "mlx5_0", "a");
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.nodes.size(), 2);
  ASSERT_THAT(Names(found), ElementsAre("no-facts"));
  EXPECT_EQ(found.findings[0].object, "n1");
  EXPECT_THAT(FindingLine(found.findings[0]),
              HasSubstr("cannot be read, and are ignored: n1:1: ver"));
}

TEST_F(Fusion, DomainsHaveNamesOfTheirOwn) {
  Label(Node("n0", 1), {"x", "x"});
  Label(Node("n1", 1), {"x", "x-leaf"});
  Label(Node("n2", 1), {"x", "x"});
  DiscoveredFabric found = Fuse();
  ASSERT_EQ(found.model.domains[1].size(), 2);
  EXPECT_EQ(found.model.domains[1][0].name, "x-leaf");
  EXPECT_EQ(found.model.domains[1][1].name, "x-leaf-2");
  EXPECT_EQ(found.model.domains[1][1].count, 2);
}

TEST_F(Fusion, ShortNamesOfHostsAreThoseOfNodes) {
  Switch("a");
  Node("n0.cluster.example", 1);
  Link("n0", "mlx5_0", "a");
  const DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.nodes[0].name, "n0.cluster.example");
  EXPECT_THAT(found.findings, IsEmpty());
}

TEST_F(Fusion, AddressesAndAmbiguousNamesAreNotShortened) {
  Switch("a");
  for (const char* name : {"10.0.0.1", "10.0.0.2", "n0.x.example", "n0.y.example"}) Node(name, 1);
  for (const char* name : {"10.0.0.1", "10.9.9.9", "10", "n0", "n0.z.example"}) {
    Link(name, "mlx5_0", "a");
  }
  const DiscoveredFabric found = Fuse();
  ASSERT_EQ(found.model.nodes.size(), 1);
  EXPECT_EQ(found.model.nodes[0].name, "10.0.0.1");
  ASSERT_THAT(Names(found), ElementsAre("no-place", "note no-place"));
  EXPECT_THAT(FindingLine(found.findings[1]),
              HasSubstr("10, 10.9.9.9, n0, n0.z.example: not a node"));
}

TEST_F(Fusion, NamesOfHostsHaveNoCase) {
  Switch("a");
  Node("n0", 1);
  Link("N0", "mlx5_0", "a");
  DiscoveredFabric found = Fuse();
  EXPECT_EQ(found.model.nodes[0].name, "n0");
  EXPECT_THAT(found.findings, IsEmpty());
  seen_ = {};
  Switch("a");
  Link("n0", "mlx5_0", "a");
  Link("N0", "mlx5_1", "a");
  found = Fuse();
  ASSERT_EQ(found.model.nodes.size(), 1) << "without Kubernetes too";
  EXPECT_EQ(found.model.nodes[0].hcas, 2);
}

TEST_F(Fusion, WithoutAnyPlaceThereIsNoFabric) {
  Node("n0", 1);
  const auto found = FuseObservations(seen_, "f");
  EXPECT_TRUE(absl::IsFailedPrecondition(found.status()));
  EXPECT_THAT(found.status().message(), HasSubstr("give cables (ibnetdiscover, lldpcli)"));
}

}  // namespace
}  // namespace railhead::fabric
