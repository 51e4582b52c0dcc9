// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/holdings/container_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace railhead::device_plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ContainerFaultsTest, OnlyContainersOfSeveralOfOurResourcesAreDivided) {
  const auto none = std::make_shared<const DeviceSnapshot>();
  const ResourceSnapshots offered = {{"rdma/hca", none}, {"rdma/storage", none}};
  const ContainerDevices both = {
      "team", "p", "both", {{"rdma/hca", {"a"}}, {"rdma/storage", {"b"}}}};
  const ContainerDevices one = {"team", "p", "one", {{"rdma/hca", {"c"}}, {"gpu", {"g"}}}};
  const std::vector<ContainerFault> faults = FindDivided({both, one}, offered);
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].container.container, "both");
  EXPECT_THAT(faults[0].message, HasSubstr("has devices of rdma/hca, rdma/storage"));
}

TEST(ContainerFaultsTest, WithoutGpusNothingIsFar) {
  const ResourceSnapshots offered = {{"rdma/hca", std::make_shared<const DeviceSnapshot>()}};
  const ContainerDevices container = {"team", "p", "main", {{"rdma/hca", {"a"}}}};
  EXPECT_THAT(FindNotNearest({container}, offered, {}, {}), IsEmpty());
}

}  // namespace
}  // namespace railhead::device_plugin
