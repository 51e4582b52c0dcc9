// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "fabric/inventory.h"
#include "fabric/node_facts/reader.h"
#include "fabric/node_facts/writer.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/machines.h"
#include "fabric/testing/role_machines.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric {
namespace {

using ::testing::HasSubstr;

// The reader accepts whatever the writer writes, and finds in it what the inventory has.
void ExpectRoundTrip(const NodeInventory& inventory, const HostFacts& host) {
  const absl::StatusOr<NodeFacts> facts = ReadNodeFacts(WriteNodeFacts(inventory, host), "node");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpus, static_cast<int>(inventory.gpus.size()));
  EXPECT_EQ(facts->gpu_direct_trouble,
            host.gpu_direct.has_value() ? GpuDirectTrouble(*host.gpu_direct) : "");
  std::vector<const Hca*> offered;
  for (const Hca& hca : inventory.hcas) {
    if (hca.offered) offered.push_back(&hca);
  }
  ASSERT_EQ(facts->rails.size(), offered.size());
  for (size_t i = 0; i < offered.size(); ++i) {
    const Hca& hca = *offered[i];
    const SeenRail& rail = facts->rails[i];
    EXPECT_EQ(rail.rail, hca.rail);
    EXPECT_EQ(rail.device, hca.name);
    EXPECT_EQ(rail.netdev, hca.netdev);
    EXPECT_EQ(rail.usable, hca.health.usable());
    EXPECT_EQ(rail.reason, hca.health.Text());
    EXPECT_EQ(rail.slaves, hca.slaves);
    const HcaPort* port = DataPort(hca);
    if (port == nullptr) continue;
    EXPECT_EQ(rail.port, port->port);
    EXPECT_EQ(rail.link_layer, port->link_layer);
    EXPECT_EQ(rail.gbps, port->rate_gbps);
  }
}

TEST(NodeFacts, AreReadAsTheyWereWrittenOfEveryMachine) {
  for (const testing::Machine& machine : testing::Machines()) {
    SCOPED_TRACE(machine.name);
    const testing::SysfsTree tree;
    Build(machine, tree);
    ExpectRoundTrip(ReadInventory(tree.root()).value(), {});
  }
  for (const testing::RoleMachine& machine : testing::RoleMachines()) {
    SCOPED_TRACE(::testing::PrintToString(machine));
    const testing::SysfsTree tree;
    Build(machine, tree);
    ExpectRoundTrip(ReadInventory(tree.root()).value(), {.memlock_bytes = 65536});
  }
}

TEST(NodeFacts, EveryRailNumberOfAnAgentCanBeRead) {
  NodeInventory inventory;
  for (int rail = 0; rail <= kHighestRail; ++rail) {
    Hca hca;
    hca.name = absl::StrCat("mlx5_", rail);
    hca.rail = rail;
    hca.offered = true;
    if (rail % 2 != 0) {
      hca.health.Set(Stage::kRules,
                     "port 1 is INIT: no subnet manager has configured it; start opensm or "
                     "the switch's own, and look at ibstat");
    }
    inventory.hcas.push_back(std::move(hca));
  }
  ExpectRoundTrip(inventory, {});
  const HostFacts no_gpu_direct = {.gpu_direct = GpuDirect{}};
  ASSERT_GT(GpuDirectTrouble(*no_gpu_direct.gpu_direct).size(), 60);
  ExpectRoundTrip(inventory, no_gpu_direct);
}

TEST(NodeFacts, EveryTroubleIsReadAlsoByOtherReleases) {
  NodeInventory inventory;
  inventory.hcas.resize(2);
  inventory.hcas[0].rail = 0;
  inventory.hcas[0].name = "mlx5_0";
  inventory.hcas[1].rail = 1;
  inventory.hcas[1].name = "mlx5_1";
  Health& health = inventory.hcas[1].health;
  health.Set(Stage::kFlapDamping, "its link flaps");
  health.Set(Stage::kRules, "port 1 is DOWN");
  ExpectRoundTrip(inventory, {});
  const std::string text = WriteNodeFacts(inventory, {});
  EXPECT_EQ(ReadNodeFacts(text, "node")->rails[1].reason, "port 1 is DOWN; its link flaps");

  nlohmann::json facts = nlohmann::json::parse(text);
  nlohmann::json& rail = facts["rails"][1];
  EXPECT_FALSE(facts["rails"][0].contains("troubles")) << "annotations are short";
  EXPECT_EQ(rail["troubles"].dump(), R"([{"stage":"rules","text":"port 1 is DOWN"},)"
                                     R"({"stage":"flap-damping","text":"its link flaps"}])");
  EXPECT_EQ(rail["reason"], "port 1 is DOWN") << "an older reader reads this alone";
  // A newer agent.
  rail["troubles"][1] = {{"stage", "vibration"}, {"text", "it shakes"}, {"since", 5}};
  EXPECT_EQ(ReadNodeFacts(facts.dump(), "node")->rails[1].reason, "port 1 is DOWN; it shakes");
  // An older agent.
  rail.erase("troubles");
  EXPECT_EQ(ReadNodeFacts(facts.dump(), "node")->rails[1].reason, "port 1 is DOWN");

  rail["troubles"] = {{{"stage", "rules"}}};
  EXPECT_THAT(std::string(ReadNodeFacts(facts.dump(), "node").status().message()),
              HasSubstr("rails[1].troubles[0].text"));
  rail["troubles"] = "DOWN";
  EXPECT_THAT(std::string(ReadNodeFacts(facts.dump(), "node").status().message()),
              HasSubstr("rails[1].troubles"));
}

TEST(NodeFacts, ADamagedTextIsReadOrRefusedWithItsField) {
  const testing::SysfsTree tree;
  Build(testing::Machines()[1], tree);
  HostFacts host;
  host.gpu_direct = GpuDirect{};
  const std::string good = WriteNodeFacts(ReadInventory(tree.root()).value(), host);
  ASSERT_TRUE(ReadNodeFacts(good, "node").ok());
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = static_cast<char>(random());
      } else {
        text.erase(at, 1 + random() % 8);
      }
    }
    const absl::StatusOr<NodeFacts> facts = ReadNodeFacts(text, "node");
    if (facts.ok()) continue;
    ++refused;
    ASSERT_TRUE(absl::IsInvalidArgument(facts.status()));
    ASSERT_THAT(std::string(facts.status().message()), ::testing::StartsWith("node"));
  }
  EXPECT_GT(refused, 1000);
}

TEST(NodeFacts, RailsInUse) {
  EXPECT_THAT(ReadRailsInUse("4,0,4,63"), ::testing::ElementsAre(0, 4, 63));
  for (const char* text : {"", "64", "-1", "a", "1,,2", "1;2"}) {
    EXPECT_THAT(ReadRailsInUse(text), ::testing::IsEmpty()) << text;
  }
}

TEST(NodeFacts, ARailTwiceIsRefusedWithTheFix) {
  const std::string rail = R"({"rail": 1, "device": "mlx5_1", "usable": true})";
  const absl::Status status =
      ReadNodeFacts(absl::StrCat(R"({"version": 1, "rails": [)", rail, ",", rail, "]}"), "node")
          .status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rails[1].rail: rail 1 is listed twice; correct `rails` in the node"));
}

}  // namespace
}  // namespace railhead::fabric
