// SPDX-License-Identifier: Apache-2.0
//
// Devices by CDI: a container is bound to its HCAs when it starts, by what it has got by then.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/agent.h"
#include "device-plugin/kubelet/pod_resources.h"
#include "device-plugin/proto/deviceplugin.pb.h"
#include "device-plugin/running_agent_for_test.h"
#include "device-plugin/testing/eventually.h"
#include "device-plugin/testing/fake_kubelet.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using testing::Devices;
using testing::Eventually;
using testing::FakePodResources;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A node whose container runtime gets devices by CDI: rxe0 and rxe1, each for two containers, and a
// GPU beside rxe1.
class CdiTest : public ConfigTest {
 protected:
  CdiTest() {
    options_.cdi_dir = base_ + "/cdi";
    fs::create_directories(options_.cdi_dir);
    Configure("resources: [{name: rdma/hca, slots: 2}]");
    const std::string gpu = "/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0";
    tree_.Write(gpu + "/class", "0x030200\n");
    tree_.Write(gpu + "/vendor", "0x1002\n");
    tree_.Write(gpu + "/numa_node", "1\n");
    tree_.Link("/sys/bus/pci/devices/0000:41:00.0", "../../../.." + gpu);
    pods_.Hold({});
  }

  // The spec of a container that kubelet gives this slot.
  std::string Allocate(const std::string& id) {
    v1beta1::AllocateResponse response;
    const grpc::Status status = kubelet_->Allocate({id}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (!status.ok()) return "";
    const v1beta1::ContainerAllocateResponse& got = response.container_responses(0);
    // Kubelet remembers all of this, whatever changes on the node.
    EXPECT_EQ(got.devices_size() + got.mounts_size() + got.envs_size() + got.annotations_size(), 0);
    EXPECT_EQ(got.cdi_devices_size(), 1);
    const std::string name = got.cdi_devices(0).name();
    EXPECT_THAT(name, ::testing::MatchesRegex("railhead.io/hca=[A-Za-z][-A-Za-z0-9_.]+"));
    return absl::StrCat(options_.cdi_dir, "/railhead.io-hca_", name.substr(name.find('=') + 1),
                        ".json");
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // The container that kubelet gave this slot and the GPU.
  static ContainerDevices Trainer(const std::string& id) {
    return {"default", "trainer", "main", {{"amd.com/gpu", {"0000:41:00.0"}}, {"rdma/hca", {id}}}};
  }

  bool WaitForHealth(const std::string& id, const std::string& health) {
    return kubelet_->WaitFor([&](const Devices& devices) {
      const auto found = devices.find(id);
      return found != devices.end() && found->second == health;
    });
  }

  const std::string near_ = absl::StrCat(kSecond, "-s0");
  const std::string far_ = absl::StrCat(kFirst, "-s0");
  FakePodResources pods_{base_ + "/pod-resources.sock", {}};
};

TEST_F(CdiTest, AContainerIsBoundToTheHcaNextToItsGpu) {
  kubelet_->Start();
  RunningAgent agent(options_);
  ASSERT_TRUE(WaitForHealth(far_, "Healthy"));
  const std::string spec = Allocate(far_);  // before anybody knows the GPU
  EXPECT_THAT(Read(spec), HasSubstr("NCCL_IB_HCA==rxe0:1"));
  pods_.Hold({Trainer(far_)});
  ASSERT_TRUE(kubelet_->PreStart({far_}).ok());
  EXPECT_THAT(Read(spec), HasSubstr("NCCL_IB_HCA==rxe1:1"));
  EXPECT_THAT(Read(spec), HasSubstr("/dev/infiniband/uverbs1"));

  // Everything tells of the HCA that it has.
  ASSERT_TRUE(Eventually([&] {
    return absl::StrContains(agent.Metrics(), R"(railhead_device_allocated{node="node-1",rail="1",)"
                                              R"(device="rxe1",port="1",namespace="default",)"
                                              R"(pod="trainer"} 1)");
  }));
  EXPECT_THAT(agent.Metrics(), HasSubstr(R"(railhead_device_allocated{node="node-1",rail="0",)"
                                         R"(device="rxe0",port="1"} 0)"));
  EXPECT_THAT(agent.Metrics(), HasSubstr("misaligned_containers{node=\"node-1\"} 0"));
  tree_.SetState("rxe1", "1: DOWN");
  EXPECT_TRUE(WaitForHealth(far_, "Unhealthy"));
  EXPECT_EQ(kubelet_->devices().at(absl::StrCat(kFirst, "-s1")), "Healthy");
  tree_.SetState("rxe1", "4: ACTIVE");
  EXPECT_TRUE(WaitForHealth(far_, "Healthy"));
  tree_.SetState("rxe0", "1: DOWN");
  EXPECT_TRUE(WaitForHealth(absl::StrCat(kFirst, "-s1"), "Unhealthy"));
  EXPECT_EQ(kubelet_->devices().at(far_), "Healthy");
  tree_.SetState("rxe0", "4: ACTIVE");

  // Another agent knows all of it, whoever writes to the folder meanwhile.
  agent.Stop();
  ASSERT_TRUE(fs::exists(spec));
  std::ofstream(options_.cdi_dir + "/vendor.json") << "{";
  std::ofstream(options_.kubelet_dir + "/railhead/allocation-broken.json") << "{";
  RunningAgent next(options_);
  ASSERT_TRUE(WaitForHealth(absl::StrCat(kFirst, "-s1"), "Healthy"));
  tree_.SetState("rxe1", "1: DOWN");
  EXPECT_TRUE(WaitForHealth(far_, "Unhealthy"));
  // At a restart of the container it gets one that is well.
  ASSERT_TRUE(kubelet_->PreStart({far_}).ok());
  EXPECT_THAT(Read(spec), HasSubstr("NCCL_IB_HCA==rxe0:1"));
  EXPECT_TRUE(WaitForHealth(far_, "Healthy"));

  pods_.Hold({});
  kubelet_->ForgetPods();
  next.Stop();
  EXPECT_FALSE(fs::exists(spec));
  EXPECT_TRUE(fs::exists(options_.cdi_dir + "/vendor.json"));
  EXPECT_THAT(FolderContent(), IsEmpty());
}

TEST_F(CdiTest, ASlotOfABrokenHcaIsUnhealthySoonAfterItsContainerEnds) {
  options_.look = std::chrono::hours(1);
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(WaitForHealth(far_, "Healthy"));
  Allocate(far_);
  pods_.Hold({Trainer(far_)});
  ASSERT_TRUE(kubelet_->PreStart({far_}).ok());
  tree_.SetState("rxe0", "1: DOWN");
  ASSERT_TRUE(WaitForHealth(absl::StrCat(kFirst, "-s1"), "Unhealthy"));
  EXPECT_EQ(kubelet_->devices().at(far_), "Healthy") << "its container has rxe1";
  pods_.Hold({});
  EXPECT_TRUE(WaitForHealth(far_, "Unhealthy"));
}

// Kubelet gives a container's resources one by one.
TEST_F(CdiTest, SeveralRailsMakeOneAllocation) {
  Configure("resources: [{name: rdma/rail, perRail: true}]");
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices({{kFirst, "Healthy"}}, "rdma/rail-0"));
  ASSERT_TRUE(kubelet_->WaitForDevices({{kSecond, "Healthy"}}, "rdma/rail-1"));
  std::vector<std::string> specs;
  for (const auto& [resource, id] :
       std::map<std::string, std::string>{{"rdma/rail-0", kFirst}, {"rdma/rail-1", kSecond}}) {
    v1beta1::AllocateResponse response;
    ASSERT_TRUE(kubelet_->Allocate({id}, &response, resource).ok());
    const std::string name = response.container_responses(0).cdi_devices(0).name();
    specs.push_back(absl::StrCat(options_.cdi_dir, "/railhead.io-hca_",
                                 name.substr(name.find('=') + 1), ".json"));
  }
  pods_.Hold(
      {{"default", "trainer", "main", {{"rdma/rail-0", {kFirst}}, {"rdma/rail-1", {kSecond}}}}});
  ASSERT_TRUE(kubelet_->PreStart({kFirst}, "rdma/rail-0").ok());
  ASSERT_TRUE(kubelet_->PreStart({kSecond}, "rdma/rail-1").ok());
  for (const std::string& spec : specs) {
    EXPECT_THAT(Read(spec), HasSubstr("NCCL_IB_HCA==rxe0:1:0,rxe1:1:1"));
  }
}

TEST_F(CdiTest, AllHcasOfAResourceAreThoseOfNow) {
  Configure("resources: [{name: rdma/hca, allHcas: true}]");
  kubelet_->Start();
  {
    const RunningAgent agent(options_);
    ASSERT_TRUE(WaitForHealth("all", "Healthy"));
    Allocate("all");
    pods_.Hold({{"default", "trainer", "main", {{"rdma/hca", {"all"}}}}});
  }
  // Another agent knows of it, and the node has one more when the container starts again.
  tree_.AddRxe(Rxe(2));
  const RunningAgent agent(options_);
  ASSERT_TRUE(WaitForHealth("all", "Healthy"));
  EXPECT_TRUE(Eventually([&] {
    if (!kubelet_->PreStart({"all"}).ok()) return false;
    const auto specs = fs::directory_iterator(options_.cdi_dir);
    return std::any_of(specs, fs::directory_iterator(), [](const fs::directory_entry& spec) {
      return absl::StrContains(Read(spec.path()), "NCCL_IB_HCA==rxe0:1:0,rxe1:1:1,rxe2:1:2");
    });
  }));
}

TEST_F(CdiTest, InterfacesMoveIntoThePodThatGetsTheirHcas) {
  Configure("resources: [{name: rdma/hca, network: moved, moveInterfaces: true}]");
  tree_.RemoveHca(Rxe(1));
  fabric::testing::FakeHca nic = Rxe(1);
  nic.name = "mlx5_1";
  nic.netdev = "ens4";
  tree_.AddHca(nic);
  tree_.MakeFolder("/sys/class/net/ens4");
  kubelet_->Start();
  const RunningAgent agent(options_);
  const std::string id = "mlx5_1-0000_00_04_0";
  ASSERT_TRUE(WaitForHealth(id, "Healthy"));
  const std::string spec = Allocate(id);
  EXPECT_THAT(Read(spec), HasSubstr(R"("hostInterfaceName": "ens4")"));
  EXPECT_THAT(Read(spec), HasSubstr(R"("name": "rail1")"));
  // When the container starts again, it is there already.
  pods_.Hold({{"default", "trainer", "main", {{"rdma/hca", {id}}}}});
  tree_.Remove("/sys/class/net/ens4");
  tree_.Remove("/sys/devices/pci0000:00/0000:00:04.0/net/ens4");
  EXPECT_TRUE(Eventually([&] {
    return kubelet_->PreStart({id}).ok() && !absl::StrContains(Read(spec), "netDevices");
  }));
}

TEST_F(CdiTest, AContainerThatStartsAgainGetsTheDeviceNodesOfNow) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(WaitForHealth(near_, "Healthy"));
  const std::string spec = Allocate(near_);
  pods_.Hold({Trainer(near_)});
  ASSERT_TRUE(kubelet_->PreStart({near_}).ok());
  EXPECT_THAT(Read(spec), HasSubstr("/dev/infiniband/uverbs1"));
  // The driver was loaded anew, and counts from elsewhere.
  fabric::testing::FakeHca anew = Rxe(1);
  anew.uverbs = 7;
  tree_.AddRxe(anew);
  tree_.Remove("/sys/class/infiniband_verbs/uverbs1");
  ASSERT_TRUE(WaitForHealth(near_, "Unhealthy")) << "the container that runs has another number";
  EXPECT_TRUE(Eventually([&] {
    return kubelet_->PreStart({near_}).ok() &&
           absl::StrContains(Read(spec), "/dev/infiniband/uverbs7") &&
           !absl::StrContains(Read(spec), "/dev/infiniband/uverbs1");
  }));
  EXPECT_TRUE(WaitForHealth(near_, "Healthy"));
  const grpc::Status status = kubelet_->PreStart({near_, "no-such-device"});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("no-such-device"));
}

TEST_F(CdiTest, AnHcaThatAContainerIsBoundToIsNotGivenAwayOtherwise) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(WaitForHealth(far_, "Healthy"));
  Allocate(far_);
  pods_.Hold({Trainer(far_)});
  ASSERT_TRUE(kubelet_->PreStart({far_}).ok());
  Configure(
      "resources:\n- {name: rdma/alone, selectors: [{names: [rxe1]}]}\n"
      "- {name: rdma/hca, slots: 2}\n");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kSecond, "Unhealthy"}}, "rdma/alone"));
  std::this_thread::sleep_for(3 * options_.look);
  EXPECT_EQ(kubelet_->devices("rdma/alone"), (Devices{{kSecond, "Unhealthy"}}));
  pods_.Hold({});
  EXPECT_TRUE(kubelet_->WaitForDevices({{kSecond, "Healthy"}}, "rdma/alone"));
}

TEST_F(CdiTest, FilesOfContainersThatAreGoneAreRemovedWhileItRuns) {
  options_.collect = std::chrono::milliseconds(50);
  options_.keep_files = absl::Milliseconds(200);
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(WaitForHealth(near_, "Healthy"));
  pods_.Hold({Trainer(near_)});
  const std::string unused = Allocate(far_);
  EXPECT_TRUE(kubelet_->PreStart({far_}).ok());
  absl::SleepFor(2 * options_.keep_files);
  EXPECT_TRUE(fs::exists(unused)) << "kubelet lists no devices of init containers";
  kubelet_->ForgetPods();
  const std::string used = Allocate(near_);
  EXPECT_TRUE(Eventually([&] { return !fs::exists(unused); }));
  EXPECT_TRUE(fs::exists(used));
  EXPECT_TRUE(kubelet_->PreStart({near_}).ok());
  EXPECT_EQ(kubelet_->PreStart({far_}).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ConfigTest, InterfacesMoveByCdiAlone) {
  Configure("resources: [{name: rdma/hca, network: moved, moveInterfaces: true}]");
  const absl::Status status = Agent::Make(options_).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("moveInterfaces of rdma/hca needs CDI"));
}

}  // namespace
}  // namespace railhead::device_plugin
