// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/holdings/holdings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "device-plugin/grant/allocation_record.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

const ContainerDevices kTrainer = {"team", "trainer", "main", {{"rdma/hca", {"a"}}}};
const CheckpointEntry kTrainerWrittenDown = {"uid", "rdma/hca", {"a"}};

PodList Listed(std::vector<ContainerDevices> containers, std::set<PodName> others = {}) {
  PodList list;
  for (const ContainerDevices& container : containers) {
    others.emplace(container.pod_namespace, container.pod);
  }
  list.containers = std::move(containers);
  list.pods = std::move(others);
  return list;
}

// Kubelet lists the pod of an ordinary init container without its devices.
TEST(EntriesInUse, AreThoseOfAllPodsThatAreNotKnownToBeGone) {
  const CheckpointEntry init = {"init-uid", "rdma/hca", {"b"}};
  const CheckpointEntry own_init = {"uid", "rdma/hca", {"a"}, "", "init"};
  const std::vector<CheckpointEntry> checkpoint = {kTrainerWrittenDown, own_init, init};
  PodsByUid pods;
  PodList listed = Listed({kTrainer}, {{"team", "init-only"}});
  LearnPods(checkpoint, listed, pods);
  EXPECT_THAT(pods, UnorderedElementsAre(Pair("uid", PodName("team", "trainer"))));
  EXPECT_EQ(EntriesInUse(checkpoint, listed, pods), checkpoint);
  // It still runs, and another container of it has the devices now.
  listed = Listed({}, {{"team", "trainer"}});
  EXPECT_EQ(EntriesInUse(checkpoint, listed, pods), checkpoint);
  listed = Listed({});
  EXPECT_THAT(EntriesInUse(checkpoint, listed, pods), ElementsAre(init));
  LearnPods({init}, listed, pods);
  EXPECT_THAT(pods, IsEmpty()) << "kubelet has forgotten the pod";
}

TEST(UidOfAContainer, IsKnownIfOnePodHasItsDevices) {
  EXPECT_EQ(UidOf(kTrainer, {kTrainerWrittenDown, {"uid", "rdma/hca", {"a"}, "", "init"}}), "uid");
  EXPECT_EQ(UidOf(kTrainer, {kTrainerWrittenDown, {"other", "rdma/hca", {"a"}}}), "");
  EXPECT_EQ(UidOf(kTrainer, {{"other", "rdma/hca", {"a", "b"}}}), "");
}

TEST(Holdings, WhatKubeletListsCounts) {
  Evidence evidence;
  evidence.listed = Listed({kTrainer});
  const Holdings holdings = Weigh({{{"rdma/hca", {"b"}}}, {"b"}, true}, evidence);
  EXPECT_TRUE(holdings.complete);
  EXPECT_THAT(holdings.by_resource.at("rdma/hca"), ElementsAre("a"));
  EXPECT_THAT(holdings.bound, ElementsAre("a"));
}

TEST(Holdings, WithoutAnAnswerAllElseCounts) {
  Evidence evidence;
  evidence.checkpoint = {kTrainerWrittenDown};
  evidence.records = {NewRecord("hca-1", 1, "rdma/hca", {"c-s1"})};
  evidence.records[0].binding["c"] = "d";
  const Holdings holdings = Weigh({{{"rdma/hca", {"b"}}}, {"b"}, true}, evidence);
  EXPECT_FALSE(holdings.complete);
  EXPECT_THAT(holdings.by_resource.at("rdma/hca"), ElementsAre("a", "b", "c-s1", "d-s1"));
  EXPECT_THAT(HeldHcas(holdings), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(holdings.bound, ElementsAre("a", "b", "d-s1"));
}

TEST(Holdings, AnAnswerWithoutTheAgentsOwnPodIsNotComplete) {
  Evidence evidence;
  evidence.own_pod = {"railhead", "agent-x"};
  evidence.listed = Listed({kTrainer}, {{"other", "agent-x"}});
  EXPECT_FALSE(Weigh({}, evidence).complete);
  evidence.listed = Listed({kTrainer}, {{"railhead", "agent-x"}});
  EXPECT_TRUE(Weigh({}, evidence).complete);
}

TEST(Holdings, AYoungKubeletMustListAllThatItHasWrittenDown) {
  Evidence evidence;
  evidence.young = true;
  evidence.listed = Listed({});
  EXPECT_FALSE(Weigh({}, evidence).complete) << "its file cannot be read";
  evidence.checkpoint = {kTrainerWrittenDown};
  EXPECT_FALSE(Weigh({}, evidence).complete);
  EXPECT_THAT(Weigh({}, evidence).by_resource.at("rdma/hca"), ElementsAre("a"));
  evidence.listed = Listed({kTrainer});
  EXPECT_TRUE(Weigh({}, evidence).complete);
  // The pod has ended, and the file does not say so yet.
  evidence.listed = Listed({});
  evidence.seen = {{"rdma/hca", {"a"}}};
  EXPECT_TRUE(Weigh({}, evidence).complete);
  evidence.seen.clear();
  // Later it is the file that is behind.
  evidence.listed = Listed({});
  evidence.young = false;
  EXPECT_TRUE(Weigh({}, evidence).complete);
  EXPECT_THAT(Weigh({}, evidence).by_resource, IsEmpty());
}

TEST(Holdings, AnHcaThatWasRenamedIsKnownByItsAddress) {
  const std::set<std::string> held = {"mlx5_0-0000_18_00_0", "siw0"};
  EXPECT_TRUE(MayBeAmong(held, "mlx5_0", "0000:18:00.0"));
  EXPECT_TRUE(MayBeAmong(held, "rocep24s0", "0000:18:00.0"));
  EXPECT_FALSE(MayBeAmong(held, "mlx5_0", "0000:18:00.1"));
  EXPECT_TRUE(MayBeAmong(held, "siw0", ""));
  EXPECT_TRUE(MayBeAmong(held, "siw1", "")) << "siw0 was renamed before its pod got it";
  EXPECT_FALSE(MayBeAmong({"mlx5_0-0000_18_00_0"}, "siw1", ""));
}

}  // namespace
}  // namespace railhead::device_plugin
