// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A and b: "a", "b" with '!' where it is unhealthy.
std::vector<std::string> Offered(const std::map<std::string, std::vector<Device>>& assigned,
                                 const std::string& resource) {
  std::vector<std::string> offered;
  const auto found = assigned.find(resource);
  if (found == assigned.end()) return {"no such resource"};
  for (const Device& device : found->second) {
    offered.push_back(absl::StrCat(device.id, device.hca.health.usable() ? "" : "!"));
  }
  return offered;
}

class AssignTest : public ::testing::Test {
 protected:
  AssignTest() {
    for (const char* name : {"a", "b"}) {
      fabric::Hca hca;
      hca.name = name;
      inventory_.hcas.push_back(hca);
    }
    fabric::AssignRails(inventory_.hcas);
  }

  static ResourceConfig Only(const std::string& resource, const std::string& hca, int slots = 1) {
    ResourceConfig config{resource, {Selector{}}, slots};
    config.selectors[0].names = {hca};
    return config;
  }

  fabric::NodeInventory inventory_;
  AgentConfig config_;
};

TEST_F(AssignTest, GivesEachResourceItsOwn) {
  config_.resources = {Only("rdma/x", "a"), {"rdma/hca", {}, 1}, Only("rdma/none", "c")};
  const auto assigned = Assign(config_, inventory_, {});
  EXPECT_THAT(Offered(assigned, "rdma/x"), ElementsAre("a"));
  EXPECT_THAT(Offered(assigned, "rdma/hca"), ElementsAre("b"));
  EXPECT_THAT(Offered(assigned, "rdma/none"), IsEmpty());
  EXPECT_EQ(assigned.size(), 3U);
}

TEST_F(AssignTest, SlotsNameTheirHca) {
  config_.resources = {{"rdma/hca", {}, 2}};
  EXPECT_THAT(Offered(Assign(config_, inventory_, {}), "rdma/hca"),
              ElementsAre("a-s0", "a-s1", "b-s0", "b-s1"));
}

TEST_F(AssignTest, EachRailMayBeAResource) {
  config_.resources = {{.name = "rdma/rail", .per_rail = true}};
  const auto assigned = Assign(config_, inventory_, {});
  EXPECT_EQ(assigned.size(), 2U);
  EXPECT_THAT(Offered(assigned, "rdma/rail-0"), ElementsAre("a"));
  EXPECT_THAT(Offered(assigned, "rdma/rail-1"), ElementsAre("b"));
  // From one resource for all.
  const auto before = Assign(config_, inventory_, {{"rdma/rail", {"a"}}});
  EXPECT_THAT(Offered(before, "rdma/rail-0"), ElementsAre("a!"));
  EXPECT_THAT(Offered(before, "rdma/rail"), ElementsAre("a!"));
}

TEST_F(AssignTest, OneDeviceMayBeAllHcas) {
  config_.resources = {{.name = "rdma/all", .slots = 2, .all_hcas = true}};
  auto assigned = Assign(config_, inventory_, {{"rdma/all", {"all-s1"}}});
  EXPECT_THAT(Offered(assigned, "rdma/all"), ElementsAre("all-s0", "all-s1"));
  EXPECT_EQ(assigned.at("rdma/all")[0].all, inventory_.hcas);
  // All of them, or none.
  inventory_.hcas[1].health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  assigned = Assign(config_, inventory_, {});
  EXPECT_THAT(Offered(assigned, "rdma/all"), ElementsAre("all-s0!", "all-s1!"));
  EXPECT_EQ(assigned.at("rdma/all")[0].hca.health.reason(), "b: port 1 is DOWN");
  inventory_.hcas[1].health = {};
  // A pod has one of them from before.
  assigned = Assign(config_, inventory_, {{"rdma/hca", {"b"}}});
  EXPECT_THAT(Offered(assigned, "rdma/hca"), ElementsAre("b!"));
  EXPECT_THAT(Offered(assigned, "rdma/all"), ElementsAre("all-s0!", "all-s1!"));
  EXPECT_THAT(assigned.at("rdma/all")[0].hca.health.reason(), HasSubstr("b as rdma/hca"));
  // A pod has all of them from before.
  config_.resources = {{"rdma/hca", {}, 1}};
  assigned = Assign(config_, inventory_, {{"rdma/all", {"all-s1"}}});
  EXPECT_THAT(Offered(assigned, "rdma/all"), ElementsAre("all-s1!"));
  EXPECT_THAT(Offered(assigned, "rdma/hca"), ElementsAre("a!", "b!"));
}

TEST_F(AssignTest, ADeviceOfAllHcasHasTheTroublesOfEach) {
  config_.resources = {{.name = "rdma/all", .all_hcas = true}};
  inventory_.hcas[0].health.Set(fabric::Stage::kFlapDamping, "recovered");
  inventory_.hcas[1].health.Set(fabric::Stage::kFlapDamping, "its link flaps");
  inventory_.hcas[1].health.Set(fabric::Stage::kRenumbering, "a container has its device node");
  const fabric::Health health =
      Assign(config_, inventory_, {{"rdma/hca", {"a"}}}).at("rdma/all")[0].hca.health;
  EXPECT_EQ(health.reason(), "b: a container has its device node");
  EXPECT_EQ(health.Text(),
            "b: a container has its device node; a: recovered; b: its link flaps; "
            "a pod may still hold a as rdma/hca of the previous configuration");
  EXPECT_EQ(inventory_.hcas[0].health.Text(), "recovered") << "only the device's";
}

TEST_F(AssignTest, AllHcasOfAResourceAreNotThoseOfAnother) {
  config_.resources = {Only("rdma/all", "a"), {"rdma/hca", {}, 1}};
  config_.resources[0].all_hcas = true;
  const auto assigned = Assign(config_, inventory_, {{"rdma/all", {"all"}}});
  EXPECT_THAT(Offered(assigned, "rdma/all"), ElementsAre("all"));
  EXPECT_THAT(Offered(assigned, "rdma/hca"), ElementsAre("b"));
  inventory_.hcas.erase(inventory_.hcas.begin());
  EXPECT_THAT(Offered(Assign(config_, inventory_, {}), "rdma/all"), IsEmpty());
}

TEST_F(AssignTest, PciAddressesMayBeIds) {
  inventory_.hcas[0].pci_address = "0000:18:00.0";
  inventory_.hcas[1].pci_address = "0000:19:00.0";
  config_.resources = {{.name = "rdma/hca", .device_ids = DeviceIds::kPciAddress}};
  EXPECT_THAT(Offered(Assign(config_, inventory_, {}), "rdma/hca"),
              ElementsAre("0000:18:00.0", "0000:19:00.0"));
  EXPECT_THAT(Offered(Assign(config_, inventory_, {{"rdma/hca", {"0000:18:00.0"}}}), "rdma/hca"),
              ElementsAre("0000:18:00.0", "0000:19:00.0"));
  // A pod has one by its name, from before.
  const std::string named = DeviceId(inventory_.hcas[0]);
  EXPECT_THAT(Offered(Assign(config_, inventory_, {{"rdma/hca", {named}}}), "rdma/hca"),
              ElementsAre(absl::StrCat(named, "!"), "0000:18:00.0!", "0000:19:00.0"));
  // And the other way round.
  config_.resources[0].device_ids = DeviceIds::kName;
  EXPECT_THAT(Offered(Assign(config_, inventory_, {{"rdma/hca", {"0000:18:00.0"}}}), "rdma/hca"),
              ElementsAre("0000:18:00.0!", absl::StrCat(named, "!"), DeviceId(inventory_.hcas[1])));
  // Where an address has two devices, it names neither.
  config_.resources[0].device_ids = DeviceIds::kPciAddress;
  inventory_.hcas[1].pci_address = "0000:18:00.0";
  EXPECT_THAT(Offered(Assign(config_, inventory_, {}), "rdma/hca"),
              ElementsAre(named, DeviceId(inventory_.hcas[1])));
}

TEST_F(AssignTest, WhatIsHeldAsConfiguredStaysHealthy) {
  const auto assigned = Assign(config_, inventory_, {{"rdma/hca", {"a"}}, {"gpu", {"a-not"}}});
  EXPECT_THAT(Offered(assigned, "rdma/hca"), ElementsAre("a", "b"));
  EXPECT_EQ(assigned.size(), 1U);
}

TEST_F(AssignTest, WhatIsHeldAsAnotherResourceIsGivenToNobody) {
  config_.resources = {{"rdma/new", {}, 1}};
  const auto assigned = Assign(config_, inventory_, {{"rdma/hca", {"a"}}});
  EXPECT_THAT(Offered(assigned, "rdma/new"), ElementsAre("a!", "b"));
  EXPECT_THAT(assigned.at("rdma/new")[0].hca.health.reason(),
              HasSubstr("a pod may still hold this HCA as rdma/hca"));
  EXPECT_THAT(Offered(assigned, "rdma/hca"), ElementsAre("a!"));
  EXPECT_THAT(assigned.at("rdma/hca")[0].hca.health.reason(),
              HasSubstr("offers this HCA differently"));
}

TEST_F(AssignTest, WhatIsOfferedNoMoreStaysListedWhileItIsHeld) {
  config_.resources = {Only("rdma/hca", "b")};
  const auto assigned = Assign(config_, inventory_, {{"rdma/hca", {"a"}}});
  EXPECT_THAT(Offered(assigned, "rdma/hca"), ElementsAre("a!", "b"));
  EXPECT_THAT(assigned.at("rdma/hca")[0].hca.health.reason(),
              HasSubstr("no longer offers this HCA"));
}

TEST_F(AssignTest, FromExclusiveToSharedAndBack) {
  config_.resources = {{"rdma/hca", {}, 2}};
  EXPECT_THAT(Offered(Assign(config_, inventory_, {{"rdma/hca", {"a"}}}), "rdma/hca"),
              ElementsAre("a!", "a-s0!", "a-s1!", "b-s0", "b-s1"));
  config_.resources = {{"rdma/hca", {}, 1}};
  EXPECT_THAT(Offered(Assign(config_, inventory_, {{"rdma/hca", {"a-s1"}}}), "rdma/hca"),
              ElementsAre("a-s1!", "a!", "b"));
}

TEST_F(AssignTest, FewerSlotsAreStillShared) {
  config_.resources = {{"rdma/hca", {}, 2}};
  EXPECT_THAT(Offered(Assign(config_, inventory_, {{"rdma/hca", {"a-s0", "a-s3"}}}), "rdma/hca"),
              ElementsAre("a-s3!", "a-s0", "a-s1", "b-s0", "b-s1"));
}

// Whatever was and is configured: no HCA is offered as healthy twice, or while it is held
// otherwise, and nothing that is held is missing.
TEST_F(AssignTest, NeverGivesAwayWhatIsHeld) {
  std::mt19937 random(7);
  const auto random_config = [&] {
    AgentConfig config;
    config.resources.clear();
    for (const char* hca : {"a", "b"}) {
      const std::string resource = absl::StrCat("rdma/", random() % 2 == 0 ? "x" : "y", hca);
      if (random() % 4 != 0) config.resources.push_back(Only(resource, hca, 1 + random() % 3));
    }
    if (random() % 2 == 0)
      config.resources.push_back({"rdma/rest", {}, 1 + static_cast<int>(random() % 3)});
    return config;
  };
  for (int round = 0; round < 2000; ++round) {
    std::map<std::string, std::set<std::string>> held;
    for (const auto& [resource, devices] : Assign(random_config(), inventory_, {})) {
      for (const Device& device : devices) {
        if (random() % 2 == 0) held[resource].insert(device.id);
      }
    }
    const auto assigned = Assign(random_config(), inventory_, held);
    std::map<std::string, std::string> healthy;  // HCA to its one resource
    for (const auto& [resource, devices] : assigned) {
      std::set<std::string> ids;
      for (const Device& device : devices) {
        EXPECT_TRUE(ids.insert(device.id).second) << device.id;
        if (!device.hca.health.usable()) continue;
        EXPECT_EQ(healthy.emplace(device.hca.name, resource).first->second, resource);
        const bool exclusive = device.id == device.hca.name;
        for (const auto& [holder, held_ids] : held) {
          for (const std::string& id : held_ids) {
            if (id[0] != device.hca.name[0]) continue;
            EXPECT_EQ(holder, resource);
            EXPECT_EQ(id == device.hca.name, exclusive);
          }
        }
      }
      for (const std::string& id : held[resource]) EXPECT_TRUE(ids.contains(id)) << id;
    }
    for (const auto& [resource, ids] : held) {
      EXPECT_TRUE(ids.empty() || assigned.contains(resource)) << resource;
    }
  }
}

}  // namespace
}  // namespace railhead::device_plugin
