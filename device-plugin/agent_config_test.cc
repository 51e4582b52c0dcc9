// SPDX-License-Identifier: Apache-2.0
//
// The agent's configuration: resources and their devices, interfaces that move into pods, and
// changes while the agent runs.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/proto/deviceplugin.pb.h"
#include "device-plugin/running_agent_for_test.h"
#include "device-plugin/testing/eventually.h"
#include "device-plugin/testing/fake_kubelet.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using testing::Devices;
using ::testing::ElementsAre;
using testing::Eventually;
using testing::FakePodResources;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ConfigTest, OffersEachResourceItsDevices) {
  Configure("resources:\n- {name: rdma/fast, selectors: [{names: [rxe1]}]}\n- {name: rdma/hca}\n");
  kubelet_->Start();
  const RunningAgent agent(options_);
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Healthy"}}));
  EXPECT_TRUE(kubelet_->WaitForDevices({{kSecond, "Healthy"}}, "rdma/fast"));
  v1beta1::AllocateResponse response;
  EXPECT_TRUE(kubelet_->Allocate({kSecond}, &response, "rdma/fast").ok());
  EXPECT_EQ(kubelet_->Allocate({kSecond}, &response).error_code(), grpc::StatusCode::NOT_FOUND);
  kubelet_->CutStream("rdma/fast");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kSecond, "Healthy"}}, "rdma/fast"));
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Healthy"}}));
}

TEST_F(ConfigTest, EachRailMayBeAResource) {
  Configure("resources: [{name: rdma/rail, perRail: true}]");
  kubelet_->Start();
  const RunningAgent agent(options_);
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Healthy"}}, "rdma/rail-0"));
  EXPECT_TRUE(kubelet_->WaitForDevices({{kSecond, "Healthy"}}, "rdma/rail-1"));
  EXPECT_EQ(kubelet_->registrations(), 2);
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kSecond}, &response, "rdma/rail-1").ok());
  EXPECT_EQ(response.container_responses(0).envs().at("NCCL_IB_HCA"), "=rxe1:1:1");
}

TEST_F(ConfigTest, OneDeviceMayBeAllHcasOfTheNode) {
  Configure("resources: [{name: rdma/all, allHcas: true, slots: 2}]");
  FakePodResources pods(options_.pod_resources_socket, {});
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices({{"all-s0", "Healthy"}, {"all-s1", "Healthy"}}, "rdma/all"));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({"all-s1"}, &response, "rdma/all").ok());
  EXPECT_EQ(response.container_responses(0).envs().at("NCCL_IB_HCA"), "=rxe0:1:0,rxe1:1:1");
  EXPECT_EQ(response.container_responses(0).devices_size(), 3);
  pods.Hold({{"default", "busy", "main", {{"rdma/all", {"all-s1"}}}}});
  for (const char* device : {"rxe0", "rxe1"}) {
    EXPECT_TRUE(Eventually([&] {
      return absl::StrContains(
          agent.Metrics(),
          absl::StrCat("device=\"", device, R"(",port="1",namespace="default",pod="busy"} 1)"));
    })) << device;
  }
  tree_.SetState("rxe1", "1: DOWN");
  EXPECT_TRUE(
      kubelet_->WaitForDevices({{"all-s0", "Unhealthy"}, {"all-s1", "Unhealthy"}}, "rdma/all"));
}

// The CNI plugins of Multus are told the ids of what kubelet gave.
TEST_F(ConfigTest, KubeletMayKnowDevicesByTheirPciAddresses) {
  Configure("resources: [{name: rdma/hca, deviceIds: pciAddress}]");
  for (int i = 0; i < 2; ++i) {
    tree_.RemoveHca(Rxe(i));
    fabric::testing::FakeHca nic = Rxe(i);
    nic.name = absl::StrCat("mlx5_", i);
    tree_.AddHca(nic);
  }
  FakePodResources pods(options_.pod_resources_socket, {"0000:00:04.0"});
  kubelet_->Start();
  const RunningAgent agent(options_);
  const Devices by_address = {{"0000:00:03.0", "Healthy"}, {"0000:00:04.0", "Healthy"}};
  ASSERT_TRUE(kubelet_->WaitForDevices(by_address));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({"0000:00:03.0"}, &response).ok());
  EXPECT_EQ(response.container_responses(0).envs().at("NCCL_IB_HCA"), "=mlx5_0:1:0");
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(agent.Metrics(),
                             R"(device="mlx5_1",port="1",namespace="default",pod="busy"} 1)");
  }));
  // It would be given twice under another id.
  Configure("");
  EXPECT_TRUE(kubelet_->WaitForDevices({{"mlx5_0-0000_00_03_0", "Healthy"},
                                        {"0000:00:04.0", "Unhealthy"},
                                        {"mlx5_1-0000_00_04_0", "Unhealthy"}}));
  pods.Hold({});
  EXPECT_TRUE(kubelet_->WaitForDevices(
      {{"mlx5_0-0000_00_03_0", "Healthy"}, {"mlx5_1-0000_00_04_0", "Healthy"}}));
}

// rxe1 stands for a virtual function whose interface SR-IOV CNI will move.
TEST_F(ConfigTest, WhatIsMovedIntoPodsMayBeDownBefore) {
  tree_.SetState("rxe1", "1: DOWN");
  tree_.Write("/sys/class/net/eth2/flags", "0x1002\n");
  Configure(
      "resources:\n- {name: rdma/vf, selectors: [{interfaces: [eth2]}], network: moved}\n"
      "- {name: rdma/hca}\n");
  kubelet_->Start();
  const RunningAgent agent(options_);
  EXPECT_TRUE(kubelet_->WaitForDevices({{kSecond, "Healthy"}}, "rdma/vf"));
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Healthy"}}));
  Configure("");
  EXPECT_TRUE(kubelet_->WaitFor([](const Devices& devices) {
    return devices.contains(kSecond) && devices.at(kSecond) == "Unhealthy";
  }));
}

// In exclusive mode rdma-cni moves the RDMA device, and the host sees it no more.
TEST_F(ConfigTest, AnHcaThatIsInItsPodIsHealthy) {
  Configure("resources: [{name: rdma/hca, network: moved}]");
  FakePodResources pods(options_.pod_resources_socket, {});
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  pods.Hold({{"default", "trainer", "main", {{"rdma/hca", {kSecond}}}}});
  tree_.Remove("/sys/class/infiniband/rxe0");
  tree_.Remove("/sys/class/infiniband/rxe1");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Unhealthy"}, {kSecond, "Healthy"}}));
  // Its container may start again.
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kSecond}, &response).ok());
  EXPECT_EQ(response.container_responses(0).devices(0).host_path(), "/dev/infiniband/uverbs1");
}

// A CNI moves it as soon as it is allocated, seconds before the next look at kubelet's list.
TEST_F(ConfigTest, AnHcaThatMovesIntoItsPodBeforeTheNextLookIsHealthyAndKeepsItsRail) {
  Configure("resources: [{name: rdma/hca, network: moved}]");
  options_.look = std::chrono::hours(1);
  const FakePodResources pods(options_.pod_resources_socket, {});
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kSecond}, &response).ok());
  tree_.Remove("/sys/class/infiniband/rxe0");
  tree_.Remove("/sys/class/infiniband/rxe1");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Unhealthy"}, {kSecond, "Healthy"}}));
}

// On the way the interface goes down and up, which the port counts.
TEST_F(ConfigTest, AnHcaThatIsSetDownForItsPodStaysHealthy) {
  const std::string counter = "/sys/class/infiniband/rxe1/ports/1/hw_counters/link_downed";
  tree_.Write(counter, "0\n");
  Configure("resources: [{name: rdma/hca, network: moved}]");
  options_.flap_damper.recover = std::chrono::hours(1);
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  tree_.Write("/sys/class/net/eth2/flags", "0x1002\n");
  tree_.SetState("rxe1", "1: DOWN");
  tree_.Write(counter, "1\n");
  // A change that kubelet gets, later than this one.
  tree_.SetState("rxe0", "1: DOWN");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Unhealthy"}, {kSecond, "Healthy"}}));
}

TEST_F(ConfigTest, AResourceMayHaveALongName) {
  const std::string resource = "rdma/" + std::string(57, 'x');
  // As long as kubelet's own folder.
  options_.kubelet_dir = base_ + "/dp";
  const size_t room = std::string("/var/lib/kubelet/device-plugins").size();
  ASSERT_LE(options_.kubelet_dir.size(), room) << "the test's folder is too long";
  Configure(absl::StrCat("resources: [{name: ", resource, "}]"));
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_, resource));
  EXPECT_LE(kubelet_->last_request().endpoint().size() + room + 1, 107U);
}

// The mount of a container at this path.
const v1beta1::Mount* MountAt(const v1beta1::ContainerAllocateResponse& got,
                              const std::string& path) {
  for (const v1beta1::Mount& mount : got.mounts()) {
    if (mount.container_path() == path) return &mount;
  }
  return nullptr;
}

TEST_F(ConfigTest, NcclIsToldOfTheMachineWhereTheConfigurationSaysSo) {
  Configure("ncclTopology: true");
  const FakePodResources pods(options_.pod_resources_socket, {kSecond});
  kubelet_->Start();
  RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kSecond}, &response).ok());
  const v1beta1::ContainerAllocateResponse got = response.container_responses(0);
  EXPECT_EQ(got.envs().at("NCCL_TOPO_FILE"), "/run/railhead/nccl-topology.xml");
  const v1beta1::Mount* mount = MountAt(got, "/run/railhead/nccl-topology.xml");
  ASSERT_NE(mount, nullptr);
  EXPECT_TRUE(mount->read_only());
  ASSERT_NE(MountAt(got, "/run/railhead/rails.json"), nullptr);
  std::ifstream file(mount->host_path());
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_THAT(text, HasSubstr("busid=\"0000:00:04.0\""));
  EXPECT_THAT(text, HasSubstr("<net name=\"rxe1\"/>"));
  // A change of the configuration is for containers that come later.
  Configure("ncclTopology: false");
  EXPECT_TRUE(Eventually([&] {
    v1beta1::AllocateResponse later;
    return kubelet_->Allocate({kFirst}, &later).ok() &&
           !later.container_responses(0).envs().contains("NCCL_TOPO_FILE");
  }));
  // Kubelet still holds the path for a container that has the device.
  agent.Stop();
  EXPECT_TRUE(fs::exists(mount->host_path()));
}

TEST_F(ConfigTest, TheTopologyFileGoesWithTheLastDeviceThatIsHeld) {
  Configure("ncclTopology: true");
  const FakePodResources pods(options_.pod_resources_socket, {});
  kubelet_->Start();
  RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kFirst}, &response).ok());
  kubelet_->ForgetPods();
  agent.Stop();
  EXPECT_THAT(FolderContent(), IsEmpty());
}

TEST_F(ConfigTest, SlotsShareAnHca) {
  Configure("resources: [{name: rdma/hca, slots: 2}]");
  kubelet_->Start();
  const RunningAgent agent(options_);
  const std::string first(kFirst);
  const std::string second(kSecond);
  EXPECT_TRUE(kubelet_->WaitForDevices({{first + "-s0", "Healthy"},
                                        {first + "-s1", "Healthy"},
                                        {second + "-s0", "Healthy"},
                                        {second + "-s1", "Healthy"}}));
  EXPECT_THAT(kubelet_->Prefer(2), ElementsAre(first + "-s0", second + "-s0"));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({first + "-s1", first + "-s0"}, &response).ok());
  // Two slots of one HCA are one HCA.
  EXPECT_EQ(response.container_responses(0).envs().at("NCCL_IB_HCA"), "=rxe0:1:0");
  EXPECT_EQ(response.container_responses(0).devices_size(), 2);
}

TEST_F(ConfigTest, AChangeIsTakenWithoutCuttingStreams) {
  FakePodResources pods(options_.pod_resources_socket, {});
  Configure("");
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  Configure("resources:\n- {name: rdma/hca, selectors: [{rails: [0]}]}\n- {name: rdma/other}\n");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Healthy"}}));
  EXPECT_TRUE(kubelet_->WaitForDevices({{kSecond, "Healthy"}}, "rdma/other"));
  EXPECT_EQ(kubelet_->registrations(), 2);
  Configure("rails: [{rail: 0, name: rxe1}]");
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
  EXPECT_TRUE(kubelet_->WaitForDevices({}, "rdma/other"));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kFirst, kSecond}, &response).ok());
  EXPECT_EQ(response.container_responses(0).envs().at("NCCL_IB_HCA"), "=rxe1:1:0,rxe0:1:1");
  EXPECT_EQ(kubelet_->registrations(), 2);
}

// Kubelet may be allocating a device by its former resource, and lists that only later.
TEST_F(ConfigTest, AResourceThatIsNewIsNoReasonToLookAtKubeletSooner) {
  const FakePodResources pods(options_.pod_resources_socket, {});
  options_.look = std::chrono::milliseconds(1500);
  Configure("");
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  const auto changed = std::chrono::steady_clock::now();
  Configure("resources: [{name: rdma/new}]");
  EXPECT_TRUE(kubelet_->WaitForDevices(both_, "rdma/new"));
  EXPECT_GE(std::chrono::steady_clock::now() - changed, options_.look);
}

TEST_F(ConfigTest, AWrongOneLeavesTheLastGoodOne) {
  FakePodResources pods(options_.pod_resources_socket, {});
  Configure("");
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  Configure("resources: [{name: rdma/hca, slots: 0}]");
  EXPECT_TRUE(Eventually(
      [&] { return absl::StrContains(agent.Metrics(), "config_refused{node=\"node-1\"} 1"); }));
  EXPECT_EQ(kubelet_->devices(), both_);
  // It goes on with both.
  tree_.SetState("rxe1", "1: DOWN");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Healthy"}, {kSecond, "Unhealthy"}}));
  Configure("resources: [{name: rdma/hca, selectors: [{names: [rxe0]}]}]");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Healthy"}}));
}

TEST_F(ConfigTest, WhatAPodHoldsIsNotGivenAwayUntilItEnds) {
  FakePodResources pods(options_.pod_resources_socket, {kFirst});
  Configure("");
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  Configure("resources: [{name: rdma/new}]");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Unhealthy"}, {kSecond, "Healthy"}}, "rdma/new"));
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Unhealthy"}}));
  v1beta1::AllocateResponse response;
  EXPECT_EQ(kubelet_->Allocate({kFirst}, &response, "rdma/new").error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  pods.Hold({});
  EXPECT_TRUE(kubelet_->WaitForDevices(both_, "rdma/new"));
  EXPECT_TRUE(kubelet_->WaitForDevices({}));
}

TEST_F(ConfigTest, WhatMovesWaitsUntilKubeletTellsWhoHoldsWhat) {
  Configure("");
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  Configure("resources: [{name: rdma/new}]");
  const Devices neither = {{kFirst, "Unhealthy"}, {kSecond, "Unhealthy"}};
  EXPECT_TRUE(kubelet_->WaitForDevices(neither, "rdma/new"));
  EXPECT_TRUE(kubelet_->WaitForDevices(neither));
  std::this_thread::sleep_for(3 * options_.look);
  EXPECT_EQ(kubelet_->devices("rdma/new"), neither);
  const FakePodResources pods(options_.pod_resources_socket, {});
  EXPECT_TRUE(kubelet_->WaitForDevices(both_, "rdma/new"));
}

}  // namespace
}  // namespace railhead::device_plugin
