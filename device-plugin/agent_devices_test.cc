// SPDX-License-Identifier: Apache-2.0
//
// Devices that vanish, return, and change on a running node, and what a container gets that asks
// for them.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/proto/deviceplugin.pb.h"
#include "device-plugin/running_agent_for_test.h"
#include "device-plugin/testing/eventually.h"
#include "device-plugin/testing/fake_kubelet.h"
#include "fabric/pod_rails.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::Eventually;
using testing::FakePodResources;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(AgentTest, AVanishedDeviceStaysUnhealthyAndComesBack) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  tree_.RemoveHca(Rxe(0));
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Unhealthy"}, {kSecond, "Healthy"}}));
  v1beta1::AllocateResponse response;
  EXPECT_EQ(kubelet_->Allocate({kFirst}, &response).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  tree_.AddRxe(Rxe(0));
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
}

// udev, or a driver that was loaded anew, has given it another name.
TEST_F(AgentTest, AnHcaThatIsRenamedStaysOneDeviceOnItsRail) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  tree_.RemoveHca(Rxe(0));
  fabric::testing::FakeHca renamed = Rxe(0);
  renamed.name = "rocep0s3";
  renamed.uverbs = 5;
  tree_.AddRxe(renamed);
  ASSERT_TRUE(Eventually([&] { return NcclHcas({kFirst, kSecond}) == "=rocep0s3:1:0,rxe1:1:1"; }));
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
  EXPECT_THAT(agent.Metrics(), HasSubstr(R"(device="rocep0s3")"));
}

TEST_F(AgentTest, ANicThatIsMissingKeepsItsRailOverARestart) {
  kubelet_->Start();
  {
    const RunningAgent agent(options_);
    ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  }
  tree_.RemoveHca(Rxe(0));
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices({{kFirst, "Unhealthy"}, {kSecond, "Healthy"}}));
  EXPECT_EQ(NcclHcas({kSecond}), "=rxe1:1:1");
}

// An earlier agent gave it to a pod before it was renamed, and no map tells of that.
TEST_F(AgentTest, AnHcaThatAPodHoldsUnderItsFormerNameIsNotOfferedOnceMore) {
  const FakePodResources pods(options_.pod_resources_socket, {"mlx5_0-0000_00_03_0"});
  kubelet_->Start();
  const RunningAgent agent(options_);
  EXPECT_TRUE(kubelet_->WaitForDevices({{"mlx5_0-0000_00_03_0", "Healthy"}, {kSecond, "Healthy"}}));
}

TEST_F(AgentTest, ARailMapThatIsNoneIsIgnored) {
  for (const char* text : {"", "{\"apiVersion\": \"railhead.io/v1al",
                           R"({"apiVersion": "railhead.io/v1alpha1", "kind": "RailMap",)"
                           R"( "node": "another", "board": "", "hcas": []})"}) {
    fs::create_directories(base_ + "/dp/railhead");
    std::ofstream(base_ + "/dp/railhead/rail-map.json") << text;
    kubelet_->Start();
    const RunningAgent agent(options_);
    EXPECT_TRUE(kubelet_->WaitForDevices(both_)) << text;
    EXPECT_EQ(NcclHcas({kSecond}), "=rxe1:1:1");
    kubelet_->Stop();
  }
}

TEST_F(AgentTest, APortWithoutAnAddressForOtherNodesIsUnhealthy) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  tree_.Write("/sys/class/infiniband/rxe0/node_type", "1: CA\n");
  tree_.Write("/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/0", "IB/RoCE v1\n");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Unhealthy"}, {kSecond, "Healthy"}}));
  tree_.Write("/sys/class/infiniband/rxe0/ports/1/gids/1",
              "0000:0000:0000:0000:0000:ffff:0a0a:0001");
  tree_.Write("/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1", "RoCE v2\n");
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
  // The link-local one stays when the IP address goes.
  tree_.Write("/sys/class/infiniband/rxe0/ports/1/gids/1",
              "fe80:0000:0000:0000:0000:0000:0000:0001");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Unhealthy"}, {kSecond, "Healthy"}}));
}

TEST_F(AgentTest, AnUnreadableTreeTakesNothingAway) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  fs::rename(tree_.root() + "/sys", tree_.root() + "/away");
  const auto moved = std::chrono::steady_clock::now();
  ASSERT_TRUE(
      Eventually([&] { return std::chrono::steady_clock::now() - moved > 3 * options_.rescan; }));
  kubelet_->CutStream();
  ASSERT_TRUE(Eventually([&] { return kubelet_->registrations() > 1; }));
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
}

TEST_F(AgentTest, ANodeWithoutDevicesOffersNothingUntilOneComes) {
  tree_.RemoveHca(Rxe(0));
  tree_.RemoveHca(Rxe(1));
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(Eventually([&] { return agent.health().Ready().ok(); }));
  EXPECT_THAT(FolderContent(), IsEmpty());
  EXPECT_EQ(kubelet_->registrations(), 0);
  tree_.AddRxe(Rxe(1));
  EXPECT_TRUE(kubelet_->WaitForDevices({{kSecond, "Healthy"}}));
}

TEST_F(AgentTest, AllocateGivesExactlyWhatWasAskedFor) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kSecond}, &response).ok());
  ASSERT_EQ(response.container_responses_size(), 1);
  const v1beta1::ContainerAllocateResponse& got = response.container_responses(0);
  ASSERT_EQ(got.devices_size(), 2);
  // Paths are the host's: without the root under which we see them.
  EXPECT_EQ(got.devices(0).host_path(), "/dev/infiniband/uverbs1");
  EXPECT_EQ(got.devices(0).container_path(), "/dev/infiniband/uverbs1");
  EXPECT_EQ(got.devices(0).permissions(), "rw");
  EXPECT_EQ(got.devices(1).host_path(), "/dev/infiniband/rdma_cm");
  EXPECT_EQ(got.envs_size(), 1);
  EXPECT_EQ(got.envs().at("NCCL_IB_HCA"), "=rxe1:1:1");
  ASSERT_EQ(got.mounts_size(), 1);
  EXPECT_EQ(got.mounts(0).container_path(), "/run/railhead/rails.json");
  EXPECT_TRUE(got.mounts(0).read_only());
  EXPECT_TRUE(absl::StartsWith(got.mounts(0).host_path(), options_.kubelet_dir + "/railhead/"));
  std::ifstream file(got.mounts(0).host_path());
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const absl::StatusOr<fabric::PodRails> rails = fabric::ParsePodRails(text);
  ASSERT_TRUE(rails.ok()) << rails.status();
  EXPECT_EQ(rails->node, "node-1");
  ASSERT_EQ(rails->rails.size(), 1u);
  EXPECT_EQ(rails->rails[0].rail, 1);
  EXPECT_EQ(rails->rails[0].netdev, "eth2");
}

TEST_F(AgentTest, AllocateOfAnUnknownDeviceNamesItAndDisturbsNothing) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse response;
  const grpc::Status status = kubelet_->Allocate({"rxe7-0000_00_0a_0"}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("rxe7-0000_00_0a_0"));
  EXPECT_EQ(kubelet_->registrations(), 1);
  EXPECT_TRUE(kubelet_->Allocate({kFirst}, &response).ok());
}

TEST_F(AgentTest, TellsPrometheusOfPortsPodsAndItself) {
  const FakePodResources pods(options_.pod_resources_socket, {kSecond});
  tree_.Write("/sys/class/net/eth2/statistics/tx_bytes", "4711\n");
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  // The page is made anew once a second.
  std::string text;
  // Without what was not read in time, on a busy machine.
  ASSERT_TRUE(Eventually([&] {
    text = agent.Metrics();
    return absl::StrContains(text, "railhead_agent_registered{node=\"node-1\"} 1\n") &&
           absl::StrContains(text, "railhead_agent_registrations_total{node=\"node-1\"} 1\n") &&
           absl::StrContains(text, "railhead_port_transmit_bytes_total") &&
           absl::StrContains(text, "pod=\"busy\"");
  })) << text;
  EXPECT_THAT(text, HasSubstr("railhead_agent_scan_seconds{node=\"node-1\"}"));
  EXPECT_THAT(text, HasSubstr(R"(railhead_device_allocated{node="node-1",rail="0",device="rxe0",)"
                              R"(port="1"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(railhead_port_transmit_bytes_total{node="node-1",rail="1",)"
                              R"(device="rxe1",port="1",namespace="default",pod="busy"} 4711)"));
}

// The GPUs that the container in admission has got decide.
TEST_F(AgentTest, PrefersTheHcaNextToTheContainersGpu) {
  const auto add_gpu = [&](const std::string& path) {
    const std::string folder = "/sys/devices/" + path;
    tree_.Write(folder + "/class", "0x030200\n");
    tree_.Write(folder + "/vendor", "0x10de\n");
    tree_.Write(folder + "/numa_node", path.find("40") == std::string::npos ? "-1\n" : "1\n");
    tree_.Link("/sys/bus/pci/devices/" + fs::path(path).filename().string(),
               "../../../.." + folder);
  };
  add_gpu("pci0000:40/0000:40:01.0/0000:41:00.0");  // on the NUMA node of rxe1
  add_gpu("pci0000:00/0000:00:09.0");               // below the host bridge of both
  options_.proc_root = tree_.root();
  tree_.Write("/proc/driver/nvidia/gpus/0000:41:00.0/information", "GPU UUID: GPU-far\n");
  tree_.Write("/proc/driver/nvidia/gpus/0000:00:09.0/information", "GPU UUID: GPU-near\n");
  FakePodResources pods(options_.pod_resources_socket, {});
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  // Its driver, which may hang, is not asked any more.
  tree_.Remove("/proc/driver");
  EXPECT_THAT(kubelet_->Prefer(1), ElementsAre(kFirst));
  const auto misaligned = [&](int count) {
    return absl::StrContains(agent.Metrics(),
                             absl::StrCat("misaligned_containers{node=\"node-1\"} ", count));
  };
  const std::map<std::string, std::vector<std::string>> near = {{"nvidia.com/gpu", {"GPU-far"}},
                                                                {"rdma/hca", {kSecond}}};
  const std::map<std::string, std::vector<std::string>> far = {{"nvidia.com/gpu", {"GPU-far"}},
                                                               {"rdma/hca", {kFirst}}};
  pods.Hold({{"default", "a", "main", near}, {"default", "b", "main", far}});
  EXPECT_TRUE(Eventually([&] { return misaligned(1); }));
  pods.Hold({{"default", "a", "main", near}});
  EXPECT_TRUE(Eventually([&] { return misaligned(0); }));
  // Another one each time: after some looks it is clear that it is not the one in admission, and a
  // busy machine may be late with the question.
  int trainers = 0;
  EXPECT_TRUE(Eventually([&] {
    const std::string trainer = absl::StrCat("trainer-", ++trainers);
    pods.Hold({{"default", trainer, "main", {{"nvidia.com/gpu", {"GPU-far"}}}}});
    return kubelet_->Prefer(1) == std::vector<std::string>{kSecond};
  }));
  EXPECT_TRUE(Eventually([&] { return kubelet_->Prefer(1) == std::vector<std::string>{kFirst}; }));
}

}  // namespace
}  // namespace railhead::device_plugin
