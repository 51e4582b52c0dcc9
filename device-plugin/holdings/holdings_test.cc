// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/holdings/holdings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "device-plugin/grant/allocation_record.h"
#include "fabric/inventory.h"
#include "fabric/pod_rails.h"

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
  LearnPods(checkpoint, listed, std::nullopt, pods);
  EXPECT_THAT(pods, UnorderedElementsAre(Pair("uid", KnownPod{{"team", "trainer"}})));
  EXPECT_EQ(EntriesInUse(checkpoint, listed, std::nullopt, pods), checkpoint);
  // It still runs, and another container of it has the devices now.
  listed = Listed({}, {{"team", "trainer"}});
  EXPECT_EQ(EntriesInUse(checkpoint, listed, std::nullopt, pods), checkpoint);
  listed = Listed({});
  EXPECT_THAT(EntriesInUse(checkpoint, listed, std::nullopt, pods), ElementsAre(init));
  LearnPods({init}, listed, std::nullopt, pods);
  EXPECT_THAT(pods, IsEmpty()) << "kubelet has forgotten the pod";
}

TEST(EntriesInUse, APodThatHadACgroupAndHasNoneIsGone) {
  const std::vector<CheckpointEntry> checkpoint = {{"init-uid", "rdma/hca", {"b"}}};
  const PodList listed = Listed({}, {{"team", "other"}});
  PodsByUid pods;
  // Admitted, but its network is not ready: kubelet has not made its cgroup yet.
  RunningPods running = {{"other-uid"}};
  LearnPods(checkpoint, listed, running, pods);
  EXPECT_EQ(EntriesInUse(checkpoint, listed, running, pods), checkpoint);
  running->insert("init-uid");
  LearnPods(checkpoint, listed, running, pods);
  EXPECT_EQ(EntriesInUse(checkpoint, listed, running, pods), checkpoint);
  EXPECT_EQ(EntriesInUse(checkpoint, listed, std::nullopt, pods), checkpoint) << "unknown";
  running->erase("init-uid");
  LearnPods(checkpoint, listed, running, pods);
  EXPECT_THAT(EntriesInUse(checkpoint, listed, running, pods), IsEmpty());
}

TEST(UidOfAContainer, IsKnownIfOnePodHasItsDevices) {
  EXPECT_EQ(UidOf(kTrainer, {kTrainerWrittenDown, {"uid", "rdma/hca", {"a"}, "", "init"}}), "uid");
  EXPECT_EQ(UidOf(kTrainer, {kTrainerWrittenDown, {"other", "rdma/hca", {"a"}}}), "");
  EXPECT_EQ(UidOf(kTrainer, {{"other", "rdma/hca", {"a", "b"}}}), "");
}

TEST(Holdings, WhatKubeletListsCounts) {
  Evidence evidence;
  evidence.listed = Listed({kTrainer});
  const Holdings holdings = Weigh({{{"rdma/hca", {"b"}}}, {}, {"b"}, true}, evidence);
  EXPECT_TRUE(holdings.complete);
  EXPECT_THAT(holdings.by_resource.at("rdma/hca"), ElementsAre("a"));
  EXPECT_THAT(holdings.bound, ElementsAre("a"));
}

TEST(Holdings, WithoutAnAnswerAllElseCounts) {
  Evidence evidence;
  evidence.checkpoint = {kTrainerWrittenDown};
  evidence.records = {NewRecord("hca-1", 1, "rdma/hca", {"c-s1"})};
  evidence.records[0].binding["c"] = "d";
  const Holdings holdings = Weigh({{{"rdma/hca", {"b"}}}, {}, {"b"}, true}, evidence);
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
  // Later it is the file that is behind, unless its pod is not known to be gone.
  evidence.listed = Listed({});
  evidence.young = false;
  EXPECT_TRUE(Weigh({}, evidence).complete);
  EXPECT_THAT(Weigh({}, evidence).by_resource.at("rdma/hca"), ElementsAre("a"));
  evidence.pods["uid"].name = {"team", "trainer"};
  EXPECT_THAT(Weigh({}, evidence).by_resource, IsEmpty());
}

TEST(Holdings, AnInitContainerHoldsWhatKubeletDoesNotList) {
  Evidence evidence;
  evidence.listed = Listed({kTrainer}, {{"team", "init-only"}});
  evidence.checkpoint = {kTrainerWrittenDown, {"init-uid", "rdma/hca", {"b-s1"}, "", "init"}};
  evidence.records = {NewRecord("hca-1", 1, "rdma/hca", {"b-s1"})};
  evidence.records[0].binding["b"] = "c";
  const Holdings holdings = Weigh({}, evidence);
  EXPECT_TRUE(holdings.complete);
  EXPECT_THAT(HeldHcas(holdings), ElementsAre("a", "b", "c"));
  EXPECT_THAT(holdings.bound, ElementsAre("a", "c-s1"));
}

// Whatever the resource has now.
TEST(Holdings, ADeviceOfAllHcasStandsForThoseOfItsAllocation) {
  Evidence evidence;
  evidence.listed = Listed({{"team", "trainer", "main", {{"rdma/all", {"all-s1"}}}}});
  EXPECT_THAT(HeldHcas(Weigh({}, evidence)), ElementsAre("all")) << "which is any HCA";
  evidence.records = {NewRecord("hca-1", 1, "rdma/all", {"all-s0"}, {{"z", "z"}}),
                      NewRecord("hca-2", 2, "rdma/all", {"all-s1"}, {{"a", "a"}, {"b", "b"}})};
  Holdings holdings = Weigh({}, evidence);
  EXPECT_THAT(HeldHcas(holdings), ElementsAre("a", "b"));
  EXPECT_THAT(holdings.bound, ElementsAre("a-s1", "b-s1"));
  EXPECT_THAT(holdings.by_resource.at("rdma/all"), ElementsAre("all-s1")) << "kubelet's id";
  // Of an earlier version of the agent, which wrote no record with plain device nodes.
  evidence.records.clear();
  evidence.checkpoint = {{"uid", "rdma/all", {"all-s1"}, "", "main", "digits"}};
  fabric::PodRails rails;
  rails.rails.resize(1);
  rails.rails[0].device = "mlx5_0";
  rails.rails[0].pci_address = "0000:18:00.0";
  evidence.rails["digits"] = rails;
  EXPECT_THAT(HeldHcas(Weigh({}, evidence)), ElementsAre("mlx5_0-0000_18_00_0"));
  // Without an answer of kubelet.
  evidence.listed.reset();
  evidence.checkpoint.reset();
  holdings.complete = false;
  EXPECT_THAT(HeldHcas(Weigh(holdings, evidence)), ElementsAre("a", "b"));
}

TEST(Holdings, ADeviceOfAllHcasIsAllItsRails) {
  fabric::NodeInventory inventory;
  for (const char* name : {"a", "b", "c"}) inventory.hcas.emplace_back().name = name;
  fabric::AssignRails(inventory.hcas);
  Evidence evidence;
  evidence.listed = Listed({{"team", "trainer", "main", {{"rdma/all", {"all"}}}}});
  EXPECT_THAT(RailsInUse(Weigh({}, evidence), inventory), ElementsAre(0, 1, 2));
  evidence.records = {NewRecord("hca-1", 1, "rdma/all", {"all"}, {{"a", "a"}, {"c", "c"}})};
  EXPECT_THAT(RailsInUse(Weigh({}, evidence), inventory), ElementsAre(0, 2));
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
