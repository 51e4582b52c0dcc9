// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/node_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device-plugin/devices/device_list.h"

namespace railhead::device_plugin {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

DeviceSnapshot With(const std::string& trouble, const std::string& hold = "") {
  DeviceSnapshot snapshot;
  fabric::Hca hca;
  hca.name = "mlx5_3";
  hca.rail = 3;
  hca.health.Set(fabric::Stage::kRules, trouble);
  hca.health.Set(fabric::Stage::kFlapDamping, hold);
  snapshot.devices.push_back({"mlx5_3-a", hca});
  return snapshot;
}

TEST(RailEventsTest, TellsOfChangesOnly) {
  const DeviceSnapshot up = With("");
  const DeviceSnapshot down = With("port 1 is DOWN");
  EXPECT_THAT(RailEvents({}, up), IsEmpty()) << "a node that starts well is no news";
  EXPECT_THAT(RailEvents(up, up), IsEmpty());
  EXPECT_THAT(RailEvents(down, With("", "recovered")), IsEmpty());
  for (const DeviceSnapshot& before : {up, DeviceSnapshot{}}) {
    const std::vector<kube::Event> events = RailEvents(before, down);
    ASSERT_THAT(events, SizeIs(1));
    EXPECT_TRUE(events[0].warning);
    EXPECT_EQ(events[0].reason, "RailDown");
    EXPECT_EQ(events[0].message, "rail 3 (mlx5_3): port 1 is DOWN");
    EXPECT_EQ(events[0].kind, "") << "of the node";
  }
  const std::vector<kube::Event> events = RailEvents(down, up);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_FALSE(events[0].warning);
  EXPECT_EQ(events[0].reason, "RailUp");
  EXPECT_EQ(events[0].message, "rail 3 (mlx5_3) carries data again");
}

TEST(RailEventsTest, EveryReasonIsTold) {
  const std::vector<kube::Event> events =
      RailEvents(With(""), With("port 1 is DOWN", "its link flaps"));
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].message, "rail 3 (mlx5_3): port 1 is DOWN; its link flaps");
  EXPECT_THAT(RailEvents(With("port 1 is DOWN", "its link flaps"), With("", "its link flaps")),
              IsEmpty())
      << "one of two has ended";
}

TEST(PodEventTest, FindsThePodByItsDevices) {
  const ContainerDevices container = {
      "team", "train-0", "main", {{"gpu", {"g1", "g0"}}, {"rdma/hca", {"a"}}}};
  const std::vector<CheckpointEntry> checkpoint = {{"other", "gpu", {"g2"}},
                                                   {"gone", "rdma/hca", {"a"}},
                                                   {"u", "gpu", {"g0", "g1"}},
                                                   {"u", "rdma/hca", {"a"}}};
  const kube::Event event = PodEvent(container, checkpoint, "HcasNotNearest", "far");
  EXPECT_EQ(event.uid, "u") << "'a' alone may be of a pod that has gone";
  EXPECT_EQ(event.kind, "Pod");
  EXPECT_EQ(event.space, "team");
  EXPECT_EQ(event.name, "train-0");
  EXPECT_EQ(event.reason, "HcasNotNearest");
  EXPECT_EQ(event.message, "far");
}

TEST(PodEventTest, AnUnknownPodGetsNone) {
  const ContainerDevices container = {"team", "train-0", "main", {{"rdma/hca", {"a"}}}};
  EXPECT_EQ(PodEvent(container, {}, "HcasNotNearest", "far").reason, "");
}

}  // namespace
}  // namespace railhead::device_plugin
