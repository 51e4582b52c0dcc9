// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/next_offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device-plugin/config/config.h"
#include "device-plugin/offer/scan.h"
#include "fabric/hca_role.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

fabric::Hca Nic(int number, const std::string& function = "0") {
  fabric::Hca hca;
  hca.name = absl::StrCat("mlx5_", number);
  hca.pci_address = absl::StrCat("0000:0", number % 4 + 1, ":00.", function);
  hca.ports = {{1, "ACTIVE", "Ethernet", 400}};
  hca.address = fabric::AddressKind::kRoutable;
  return hca;
}

class NextOfferTest : public ::testing::Test {
 protected:
  NextOfferTest() {
    holdings_.complete = true;
    scan_.inventory.hcas = {Nic(0), Nic(1)};
  }
  // The devices of rdma/hca, "!" where one is not healthy.
  std::vector<std::string> Next() {
    state_ = NextState(std::move(state_), {config_, scan_, holdings_, grants_, now_});
    now_ += std::chrono::seconds(1);
    std::vector<std::string> devices;
    for (const Device& device : state_.devices["rdma/hca"]) {
      devices.push_back(absl::StrCat(device.id, device.hca.health.usable() ? "" : "!"));
    }
    return devices;
  }

  AgentConfig config_;
  Scan scan_;
  Holdings holdings_;
  std::vector<Grant> grants_;
  TimePoint now_{std::chrono::hours(1)};
  OfferState state_;
};

TEST_F(NextOfferTest, FromAScanToDevices) {
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0", "mlx5_1-0000_02_00_0"));
  scan_.inventory.hcas[0].address = fabric::AddressKind::kLinkLocal;
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0!", "mlx5_1-0000_02_00_0"));
  config_.resources[0].network = fabric::PodNetwork::kAttached;
  EXPECT_THAT(state_.inventory.hcas[0].health.reason(), HasSubstr("link-local"));
  Next();
  EXPECT_THAT(state_.inventory.hcas[0].health.reason(), HasSubstr("recovered")) << "not at once";
}

TEST_F(NextOfferTest, CountersAreOfTheHcaWhateverItIsCalled) {
  scan_.link_downs["mlx5_0"] = 5;
  Next();
  scan_.inventory.hcas[0].name = "rocep1s0";
  scan_.link_downs = {{"rocep1s0", 5}};
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0", "mlx5_1-0000_02_00_0"));
  scan_.link_downs["rocep1s0"] = 6;
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0!", "mlx5_1-0000_02_00_0"));
}

TEST_F(NextOfferTest, TheLastScanMayBeJudgedAnew) {
  Next();
  config_.resources[0].slots = 2;
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0-s0", "mlx5_0-0000_01_00_0-s1",
                                  "mlx5_1-0000_02_00_0-s0", "mlx5_1-0000_02_00_0-s1"));
}

// At once, and without a delay after its end.
TEST_F(NextOfferTest, AnHcaThatAContainerCanOpenByAnOldDeviceNodeIsWithheld) {
  scan_.inventory.hcas[0].char_devices = {"/dev/infiniband/uverbs0"};
  scan_.inventory.hcas[1].char_devices = {"/dev/infiniband/uverbs1"};
  fabric::PodRail rail;
  rail.device = "mlx5_0";
  rail.pci_address = scan_.inventory.hcas[0].pci_address;
  rail.char_devices = {"/dev/infiniband/uverbs0"};
  grants_ = {{"uid", {"team", "a", "main", {}}, {}, {rail}}};
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0", "mlx5_1-0000_02_00_0"));
  std::swap(scan_.inventory.hcas[0].char_devices, scan_.inventory.hcas[1].char_devices);
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0!", "mlx5_1-0000_02_00_0!"));
  EXPECT_EQ(state_.renumbered.size(), 1U);
  grants_.clear();
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0", "mlx5_1-0000_02_00_0"));
}

// Makes each trouble of the first HCA start and end at random, and expects exactly those that hold.
class OverlapTest : public NextOfferTest {
 protected:
  static constexpr char kOwn[] = "mlx5_0-0000_01_00_0";
  static constexpr char kOther[] = "mlx5_1-0000_02_00_0";
  static constexpr fabric::Stage kCauses[] = {
      fabric::Stage::kMissing,     fabric::Stage::kHang,          fabric::Stage::kIdentity,
      fabric::Stage::kRules,       fabric::Stage::kSharedAddress, fabric::Stage::kSymbolErrors,
      fabric::Stage::kRenumbering, fabric::Stage::kAssignment};

  // Returns the health of the device after a step in which these causes hold.
  fabric::Health Step(const std::set<fabric::Stage>& causes) {
    const auto holds = [&causes](fabric::Stage stage) { return causes.contains(stage); };
    const bool read = !holds(fabric::Stage::kMissing) && !holds(fabric::Stage::kHang);
    fabric::Hca own = Nic(0);
    own.char_devices = {"/dev/infiniband/uverbs0"};
    own.host_gid = "gid 0";
    if (holds(fabric::Stage::kHang)) own.health.Set(fabric::Stage::kHang, "it hangs");
    if (holds(fabric::Stage::kRules)) own.ports[0].state = "DOWN";
    fabric::Hca other = Nic(1);
    other.host_gid = holds(fabric::Stage::kSharedAddress) ? own.host_gid : "gid 1";
    scan_ = {};
    if (!holds(fabric::Stage::kMissing)) scan_.inventory.hcas.push_back(own);
    scan_.inventory.hcas.push_back(other);
    if (holds(fabric::Stage::kSymbolErrors)) errors_ += 1000;
    if (read) scan_.symbol_errors["mlx5_0"] = errors_;
    state_.rail_map.may_be.clear();
    if (holds(fabric::Stage::kIdentity)) state_.rail_map.may_be[kOwn] = {kOther};
    grants_.clear();
    if (holds(fabric::Stage::kRenumbering)) {
      fabric::PodRail rail;
      rail.device = own.name;
      rail.pci_address = own.pci_address;
      rail.char_devices = {"/dev/infiniband/uverbs9"};
      grants_ = {{"uid", {"team", "a", "main", {}}, {}, {rail}}};
    }
    holdings_.by_resource = {{"rdma/hca", {kOther}}};
    if (holds(fabric::Stage::kAssignment)) holdings_.by_resource["rdma/old"] = {kOwn};
    now_ += std::chrono::seconds(44);
    Next();  // and one more second
    for (const Device& device : state_.devices["rdma/hca"]) {
      if (device.id == kOwn) return device.hca.health;
    }
    ADD_FAILURE() << "the HCA is not listed";
    return {};
  }

  // Returns the stages that have a trouble, by the causes of this step and of those before. Two
  // readings of a counter are within a minute.
  std::set<fabric::Stage> Expected(const std::set<fabric::Stage>& causes) {
    std::set<fabric::Stage> stages = causes;
    if (causes.contains(fabric::Stage::kMissing)) {
      for (const fabric::Stage stage :
           {fabric::Stage::kHang, fabric::Stage::kRules, fabric::Stage::kSharedAddress,
            fabric::Stage::kRenumbering}) {
        stages.erase(stage);
      }
    }
    if (causes.contains(fabric::Stage::kHang)) stages.erase(fabric::Stage::kRules);
    const bool counts = !causes.contains(fabric::Stage::kMissing) &&
                        !causes.contains(fabric::Stage::kHang) &&
                        !causes.contains(fabric::Stage::kRules);
    if (!counts || !counted_) stages.erase(fabric::Stage::kSymbolErrors);
    counted_ = counts;
    // Renumbering and assignment are no failures of the HCA.
    const bool failed = !stages.empty() && *stages.begin() < fabric::Stage::kRenumbering;
    clock_ += 45;
    if (failed && !failed_) failures_.push_back(clock_);
    if (failed) last_failed_ = clock_;
    failed_ = failed;
    std::erase_if(failures_, [this](int start) { return clock_ - start > 600; });
    const bool flaps = failures_.size() >= 3;
    held_back_ = failed || (held_back_ && flaps && clock_ - last_failed_ < 120);
    if (held_back_ && flaps) stages.insert(fabric::Stage::kFlapDamping);
    return stages;
  }

 private:
  uint64_t errors_ = 0;
  bool counted_ = false;
  bool failed_ = false;
  bool held_back_ = false;
  int clock_ = 0;
  int last_failed_ = 0;
  std::vector<int> failures_;
};

TEST_F(OverlapTest, NoTroubleHidesOrEndsAnother) {
  std::mt19937 random(5);
  std::map<fabric::Stage, std::string> texts;
  std::set<std::pair<fabric::Stage, fabric::Stage>> pairs;
  std::set<fabric::Stage> causes;
  Step(causes);
  Expected(causes);
  for (int step = 0; step < 6000; ++step) {
    const auto change = [&causes](fabric::Stage stage) {
      if (causes.erase(stage) == 0) causes.insert(stage);
    };
    // Few changes, so that everything can end; one cause that comes and goes; and many changes.
    const int kind = step / 50 % 3;
    if (kind == 1 && random() % 2 == 0) change(kCauses[static_cast<size_t>(step) / 150 % 8]);
    const unsigned changes = kind == 2 ? random() % 3 : (random() % 8 == 0 ? 1 : 0);
    for (unsigned i = 0; i < changes; ++i) change(kCauses[random() % std::size(kCauses)]);
    if (step % 50 == 0) causes.clear();
    const fabric::Health health = Step(causes);
    std::set<fabric::Stage> stages;
    for (const auto& [stage, text] : health.troubles()) {
      for (const fabric::Stage graver : stages) pairs.emplace(graver, stage);
      stages.insert(stage);
      ASSERT_EQ(texts.emplace(stage, text).first->second, text) << "whatever else there is";
    }
    ASSERT_EQ(stages, Expected(causes)) << "step " << step << ": " << health.Text();
    ASSERT_EQ(health.reason(), health.usable() ? "" : texts.at(*stages.begin()));
  }
  std::vector<std::string> never;
  for (const auto& [first, text] : texts) {
    for (const auto& [second, other] : texts) {
      if (first >= second || pairs.contains({first, second})) continue;
      never.push_back(absl::StrCat(ToString(first), " ", ToString(second)));
    }
  }
  // Nothing is known of a missing HCA; errors are counted while it is read and its port is active.
  EXPECT_THAT(never, ElementsAre("missing hang", "missing rules", "missing shared-address",
                                 "missing symbol-errors", "missing renumbering", "hang rules",
                                 "hang symbol-errors", "rules symbol-errors"));
}

// Whatever is scanned, configured and held in any order: one state and the same inputs give one
// next state; no rail is there twice, nor beyond the last; no PF beside its chosen VF; what is
// healthy is present.
TEST_F(NextOfferTest, HoldsInAnyHistory) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    OfferState state;
    for (int step = 0; step < 15; ++step) {
      scan_.inventory.hcas.clear();
      for (int number = 0; number < 4; ++number) {
        if (random() % 4 != 0) scan_.inventory.hcas.push_back(Nic(number));
        if (random() % 3 == 0) {
          fabric::Hca vf = Nic(4 + number, "1");
          vf.role = fabric::HcaRole::kVirtualFunction;
          vf.physical_function = Nic(number).pci_address;
          if (random() % 2 == 0) vf.ports[0].state = "DOWN";
          scan_.inventory.hcas.push_back(vf);
        }
      }
      config_.resources = {{.name = "rdma/hca"}};
      if (random() % 2 == 0) config_.resources[0].per_rail = true;
      if (random() % 2 == 0) {
        config_.resources.push_back({.name = "rdma/vf", .selectors = {{.roles = {"vf"}}}});
      }
      holdings_.by_resource.clear();
      for (const auto& [resource, devices] : state.devices) {
        for (const Device& device : devices) {
          if (device.hca.health.usable() && random() % 4 == 0) {
            holdings_.by_resource[resource].insert(device.id);
          }
        }
      }
      const OfferState before = state;
      state = NextState(std::move(state), {config_, scan_, holdings_, grants_, now_});
      const OfferState again = NextState(before, {config_, scan_, holdings_, grants_, now_});
      now_ += std::chrono::seconds(20);
      ASSERT_EQ(again.inventory, state.inventory);
      ASSERT_EQ(again.devices, state.devices);
      ASSERT_EQ(again.rail_map, state.rail_map);
      std::set<int> rails;
      for (const fabric::Hca& hca : state.inventory.hcas) {
        ASSERT_TRUE(!hca.offered || rails.insert(hca.rail).second);
        ASSERT_LE(hca.rail, fabric::kHighestRail);
        ASSERT_EQ(hca.health.usable(), hca.health.reason().empty()) << hca.health.reason();
        ASSERT_TRUE(hca.present || !hca.health.usable());
        if (!hca.offered || !hca.chosen) continue;
        for (const fabric::Hca& other : state.inventory.hcas) {
          const bool held = other.pci_address == hca.physical_function && other.offered;
          ASSERT_TRUE(!held || HeldHcas(holdings_).contains(other.id) || !other.present)
              << hca.name << " is a rail beside its physical function " << other.id
              << "; held: " << absl::StrJoin(HeldHcas(holdings_), ", ");
        }
      }
    }
  }
}

}  // namespace
}  // namespace railhead::device_plugin
