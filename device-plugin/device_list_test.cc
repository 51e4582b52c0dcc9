// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/device_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

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
    hca.usable = true;
    inventory.hcas.push_back(hca);
  }
  fabric::AssignRails(inventory.hcas);
  return inventory;
}

TEST(DeviceId, NamesTheNicAndItsPlace) {
  EXPECT_EQ(DeviceId("rxe0", "0000:00:03.0"), "rxe0-0000_00_03_0");
  EXPECT_EQ(DeviceId("siw0", ""), "siw0");
}

TEST(DeviceId, LongNamesFitAndStayDifferent) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const std::string id =
        DeviceId(absl::StrCat(std::string(55, 'x'), i), i % 2 == 0 ? "10000:00:03.0" : "");
    EXPECT_LE(id.size(), 63u);
    EXPECT_TRUE(ids.insert(id).second) << id;
  }
  EXPECT_EQ(DeviceId(std::string(63, 'x'), ""), std::string(63, 'x'));
}

TEST(DeviceBoard, PublishesOnlyWhatIsNew) {
  DeviceBoard board;
  EXPECT_EQ(board.Current()->generation, 0u);
  EXPECT_TRUE(board.Publish(TwoHcas()));
  const std::shared_ptr<const DeviceSnapshot> first = board.Current();
  EXPECT_EQ(first->generation, 1u);
  EXPECT_EQ(first->devices.size(), 2u);
  EXPECT_FALSE(board.Publish(TwoHcas()));
  EXPECT_EQ(board.Current(), first);
}

TEST(DeviceBoard, AnEmptyNodeIsASnapshotToo) {
  DeviceBoard board;
  EXPECT_TRUE(board.Publish(fabric::NodeInventory{}));
  EXPECT_FALSE(board.Publish(fabric::NodeInventory{}));
  EXPECT_TRUE(board.Current()->devices.empty());
}

TEST(DeviceBoard, AVanishedDeviceStaysUnhealthyAndOldSnapshotsDoNotChange) {
  DeviceBoard board;
  board.Publish(TwoHcas());
  const std::shared_ptr<const DeviceSnapshot> before = board.Current();
  fabric::NodeInventory one = TwoHcas();
  one.hcas.erase(one.hcas.begin());
  fabric::AssignRails(one.hcas);
  EXPECT_TRUE(board.Publish(one));
  const Device* gone = board.Current()->Find("rxe0-0000_00_03_0");
  ASSERT_NE(gone, nullptr);
  EXPECT_FALSE(gone->hca.usable);
  EXPECT_EQ(board.Current()->Find("rxe1-0000_00_04_0")->hca.rail, 1);
  EXPECT_TRUE(before->Find("rxe0-0000_00_03_0")->hca.usable);
  EXPECT_TRUE(board.Publish(TwoHcas()));
  EXPECT_TRUE(board.Current()->Find("rxe0-0000_00_03_0")->hca.usable);
}

TEST(DeviceSnapshot, FindsNothingForOtherIds) {
  DeviceBoard board;
  board.Publish(TwoHcas());
  EXPECT_EQ(board.Current()->Find("rxe0"), nullptr);
  EXPECT_EQ(board.Current()->Find(""), nullptr);
}

}  // namespace
}  // namespace railhead::device_plugin
