// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/devices/device_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

fabric::NodeInventory TwoHcas() {
  fabric::NodeInventory inventory;
  for (int i = 0; i < 2; ++i) {
    fabric::Hca hca;
    hca.name = absl::StrCat("rxe", i);
    hca.pci_address = absl::StrCat("0000:00:0", 3 + i, ".0");
    inventory.hcas.push_back(hca);
  }
  fabric::AssignRails(inventory.hcas);
  return inventory;
}

std::vector<Device> Devices(const fabric::NodeInventory& inventory) {
  std::vector<Device> devices;
  for (const fabric::Hca& hca : inventory.hcas) {
    devices.push_back({DeviceId(hca.name, hca.pci_address), hca});
  }
  return devices;
}

TEST(DeviceId, NamesTheNicAndItsPlace) {
  EXPECT_EQ(DeviceId("rxe0", "0000:00:03.0"), "rxe0-0000_00_03_0");
  EXPECT_EQ(DeviceId("siw0", ""), "siw0");
}

TEST(DeviceId, MayBeAPciAddress) {
  EXPECT_EQ(PciAddressIn("0000:00:03.0"), "0000:00:03.0");
  EXPECT_EQ(PciAddressIn("rxe0-0000_00_03_0-s1"), "0000:00:03.0");
  EXPECT_EQ(WholeHca("0000:00:03.0"), "0000:00:03.0");
  DeviceSnapshot snapshot;
  snapshot.inventory = TwoHcas();
  ASSERT_NE(snapshot.FindHca("0000:00:04.0"), nullptr);
  EXPECT_EQ(snapshot.FindHca("0000:00:04.0")->name, "rxe1");
  EXPECT_EQ(snapshot.FindHca("0000:00:05.0"), nullptr);
  snapshot.inventory.hcas[1].part = "soft";
  EXPECT_EQ(snapshot.FindHca("0000:00:04.0"), nullptr) << "the function's own device is meant";
}

TEST(DeviceId, LongNamesFitAndStayDifferent) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const std::string id =
        DeviceId(absl::StrCat(std::string(55, 'x'), i), i % 2 == 0 ? "10000:00:03.0" : "");
    EXPECT_LE(id.size(), 63u);
    EXPECT_TRUE(ids.insert(id).second) << id;
  }
  EXPECT_EQ(DeviceId(std::string(58, 'x'), ""), std::string(58, 'x'));
}

TEST(DeviceId, OfASlotNamesItsHca) {
  EXPECT_EQ(DeviceId("rxe0", "0000:00:03.0", 2), "rxe0-0000_00_03_0-s2");
  const std::string long_name(60, 'x');
  for (const int slot : {0, 127}) {
    const std::string id = DeviceId(long_name, "10000:00:03.0", slot);
    EXPECT_LE(id.size(), 63u);
    EXPECT_EQ(WithoutSlot(id), DeviceId(long_name, "10000:00:03.0"));
  }
  EXPECT_EQ(WithoutSlot("rxe0-0000_00_03_0"), "");
  EXPECT_EQ(WithoutSlot("rxe-switch"), "");
}

TEST(DeviceBoard, PublishesOnlyWhatIsNew) {
  DeviceBoard board;
  EXPECT_EQ(board.Current()->generation, 0u);
  EXPECT_TRUE(board.Publish(TwoHcas(), Devices(TwoHcas())));
  const std::shared_ptr<const DeviceSnapshot> first = board.Current();
  EXPECT_EQ(first->generation, 1u);
  EXPECT_EQ(first->devices.size(), 2u);
  EXPECT_FALSE(board.Publish(TwoHcas(), Devices(TwoHcas())));
  EXPECT_EQ(board.Current(), first);
  std::vector<Device> sick = Devices(TwoHcas());
  sick[0].hca.health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  EXPECT_TRUE(board.Publish(TwoHcas(), sick));
  EXPECT_TRUE(first->devices[0].hca.health.usable());  // an old snapshot does not change
}

TEST(DeviceBoard, AnEmptyNodeIsASnapshotToo) {
  DeviceBoard board;
  EXPECT_TRUE(board.Publish({}, {}));
  EXPECT_FALSE(board.Publish({}, {}));
  EXPECT_TRUE(board.Current()->devices.empty());
}

TEST(DeviceSnapshot, FindsNothingForOtherIds) {
  DeviceBoard board;
  board.Publish(TwoHcas(), Devices(TwoHcas()));
  EXPECT_EQ(board.Current()->Find("rxe0"), nullptr);
  EXPECT_EQ(board.Current()->Find(""), nullptr);
}

// What a container really has is what its pod's status should tell of.
TEST(DeviceSnapshot, ASlotThatIsBoundElsewhereIsAsWellAsThatHca) {
  DeviceSnapshot snapshot;
  for (const char* name : {"m0", "m1"}) {
    fabric::Hca hca;
    hca.name = name;
    snapshot.inventory.hcas.push_back(hca);
    snapshot.devices.push_back({DeviceId(name, "", 0), hca});
  }
  snapshot.bound = {{"m0-s0", "m1"}};
  const auto health = [&](bool m0, bool m1) {
    const std::vector<bool> well = {m0, m1};
    for (size_t i = 0; i < well.size(); ++i) {
      snapshot.inventory.hcas[i].health.Set(fabric::Stage::kRules, well[i] ? "" : "port 1 is DOWN");
      snapshot.devices[i].hca.health = snapshot.inventory.hcas[i].health;
    }
    return std::pair(snapshot.Healthy(snapshot.devices[0]), snapshot.Healthy(snapshot.devices[1]));
  };
  EXPECT_EQ(health(true, true), std::pair(true, true));
  EXPECT_EQ(health(true, false), std::pair(false, false));
  EXPECT_EQ(health(false, true), std::pair(true, true));
  // What the configuration takes away stays taken.
  health(true, true);
  snapshot.devices[0].hca.health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  EXPECT_FALSE(snapshot.Healthy(snapshot.devices[0]));
  health(true, true);
  snapshot.bound = {{"m0-s0", "gone"}};
  EXPECT_FALSE(snapshot.Healthy(snapshot.devices[0]));
}

}  // namespace
}  // namespace railhead::device_plugin
