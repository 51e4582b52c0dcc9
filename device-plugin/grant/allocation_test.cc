// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class AllocationTest : public ::testing::Test {
 protected:
  AllocationTest() {
    for (int i = 0; i < 8; ++i) {
      fabric::Hca hca;
      hca.name = absl::StrCat("mlx5_", i);
      hca.pci_address = absl::StrCat("0000:", 10 + i, ":00.0");
      hca.numa_node = i / 4;
      hca.netdev = absl::StrCat("ib", i);
      hca.ports = {fabric::HcaPort{1, "DOWN", "InfiniBand", 100},
                   fabric::HcaPort{2, "ACTIVE", "InfiniBand", 400}};
      hca.char_devices = {absl::StrCat("/dev/infiniband/uverbs", 7 - i)};
      inventory_.hcas.push_back(hca);
      ids_.push_back(DeviceId(hca.name, hca.pci_address));
    }
    fabric::AssignRails(inventory_.hcas);
    inventory_.rdma_cm = true;
  }

  absl::StatusOr<Allocation> Plan(const std::vector<std::string>& ids) {
    std::vector<Device> devices;
    for (const fabric::Hca& hca : inventory_.hcas) {
      devices.push_back({DeviceId(hca.name, hca.pci_address), hca});
    }
    board_.Publish(inventory_, devices);
    return PlanAllocation(*board_.Current(), "node-1", ids);
  }

  fabric::NodeInventory inventory_;
  std::vector<std::string> ids_;
  DeviceBoard board_;
};

TEST_F(AllocationTest, AnInterfaceMovesOnceAndIsNamedAfterItsRail) {
  for (const int i : {2, 3}) {
    inventory_.hcas[static_cast<size_t>(i)].move_interface = true;
    inventory_.hcas[static_cast<size_t>(i)].interface_here = i == 3;
  }
  const absl::StatusOr<Allocation> plan = Plan({ids_[1], ids_[2], ids_[3]});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->interfaces, (std::vector<MovedInterface>{{"ib3", "rail3"}}));
  EXPECT_EQ(plan->rails.rails[0].netdev, "ib1");
  EXPECT_EQ(plan->rails.rails[1].netdev, "rail2") << "it is in the pod already";
  EXPECT_EQ(plan->rails.rails[2].netdev, "rail3");
}

TEST_F(AllocationTest, PciAddressesMayNameTheHcas) {
  ASSERT_TRUE(Plan({ids_[0]}).ok());
  const absl::StatusOr<Allocation> plan =
      PlanForHcas(*board_.Current(), "node-1", {ids_[5], inventory_.hcas[3].pci_address});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->nccl_ib_hca, "=mlx5_3:2:3,mlx5_5:2:5");
}

TEST_F(AllocationTest, NamesTheGpusNearestToEachHca) {
  // GPU i shares a switch with HCA i; another one is equally far from those of its NUMA node.
  for (int i = 0; i < 8; ++i) {
    const std::string bridge = absl::StrCat("pci0000:", 10 + i);
    inventory_.hcas[i].path = {bridge, {"0000:00:01.0", absl::StrCat("nic", i)}};
    inventory_.gpus.push_back({"10de",
                               absl::StrCat("gpu", i),
                               i / 4,
                               {bridge, {"0000:00:01.0", absl::StrCat("gpu", i)}}});
  }
  inventory_.gpus.push_back({"10de", "gpu8", 1, {"pci0000:f0", {"0000:f0:00.0"}}});
  const absl::StatusOr<Allocation> got = Plan({ids_[3], ids_[5]});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT(got->rails.rails[0].nearest_gpus, ElementsAre("gpu3"));
  EXPECT_THAT(got->rails.rails[1].nearest_gpus, ElementsAre("gpu5", "gpu8"));
}

TEST_F(AllocationTest, GivesWhatWasAskedForInRailOrder) {
  const absl::StatusOr<Allocation> got = Plan({ids_[5], ids_[1]});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->nccl_ib_hca, "=mlx5_1:2:1,mlx5_5:2:5");
  EXPECT_THAT(got->char_devices, ElementsAre("/dev/infiniband/uverbs6", "/dev/infiniband/uverbs2",
                                             "/dev/infiniband/rdma_cm"));
  EXPECT_EQ(got->rails.node, "node-1");
  ASSERT_EQ(got->rails.rails.size(), 2u);
  fabric::PodRail expected;
  expected.rail = 1;
  expected.device = "mlx5_1";
  expected.port = 2;
  expected.link_layer = "InfiniBand";
  expected.rate_gbps = 400;
  expected.pci_address = "0000:11:00.0";
  expected.numa_node = 0;
  expected.netdev = "ib1";
  expected.char_devices = {"/dev/infiniband/uverbs6"};
  EXPECT_EQ(got->rails.rails[0], expected);
  EXPECT_EQ(got->rails.rails[1].rail, 5);
}

TEST_F(AllocationTest, NeverAForeignDevice) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> ids = ids_;
    std::shuffle(ids.begin(), ids.end(), random);
    ids.resize(1 + random() % ids.size());
    const absl::StatusOr<Allocation> got = Plan(ids);
    ASSERT_TRUE(got.ok());
    ASSERT_EQ(got->char_devices.size(), ids.size() + 1);
    ASSERT_EQ(got->rails.rails.size(), ids.size());
    for (const fabric::PodRail& rail : got->rails.rails) {
      ASSERT_THAT(ids, ::testing::Contains(DeviceId(rail.device, rail.pci_address)));
      ASSERT_THAT(got->char_devices, IsSupersetOf(rail.char_devices));
    }
  }
}

TEST_F(AllocationTest, NoConnectionManagerWhereTheNodeHasNone) {
  inventory_.rdma_cm = false;
  EXPECT_THAT(Plan({ids_[0]})->char_devices, ElementsAre("/dev/infiniband/uverbs7"));
}

TEST_F(AllocationTest, UnknownIdIsNamed) {
  const absl::Status status = Plan({ids_[0], "mlx5_9-0000_99_00_0"}).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.message(), HasSubstr("mlx5_9-0000_99_00_0"));
}

TEST_F(AllocationTest, UnusableDeviceIsNamedWithTheReason) {
  inventory_.hcas[3].health.Set(fabric::Stage::kRules, "no port is ACTIVE");
  const absl::Status status = Plan({ids_[3]}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.message(), HasSubstr(ids_[3]));
  EXPECT_THAT(status.message(), HasSubstr("no port is ACTIVE"));
}

TEST_F(AllocationTest, EmptyAndRepeatedRequestsAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Plan({}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Plan({ids_[0], ids_[0]}).status()));
}

}  // namespace
}  // namespace railhead::device_plugin
