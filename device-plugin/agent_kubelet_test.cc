// SPDX-License-Identifier: Apache-2.0
//
// The agent and kubelet: registration, also after kubelet or the stream between them has ended,
// the list of devices that containers hold, and options that the agent rejects at its start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "device-plugin/agent.h"
#include "device-plugin/kubelet/pod_resources.h"
#include "device-plugin/proto/deviceplugin.pb.h"
#include "device-plugin/running_agent_for_test.h"
#include "device-plugin/testing/eventually.h"
#include "device-plugin/testing/fake_kubelet.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using testing::Devices;
using ::testing::ElementsAre;
using testing::Eventually;
using testing::FakePodResources;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(AgentTest, RegistersTheRealDevicesWithTheirNumaNodes) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  EXPECT_EQ(kubelet_->last_request().version(), "v1beta1");
  EXPECT_EQ(kubelet_->last_request().resource_name(), "rdma/hca");
  EXPECT_EQ(kubelet_->registrations(), 1);
  const v1beta1::ListAndWatchResponse list = kubelet_->last_list();
  for (const v1beta1::Device& device : list.devices()) {
    // Node -1 must be absent, not sent.
    EXPECT_EQ(device.has_topology(), device.id() == kSecond);
    if (device.has_topology()) {
      EXPECT_EQ(device.topology().nodes(0).id(), 1);
    }
  }
  EXPECT_TRUE(Eventually([&] { return agent.health().Ready().ok(); }));
}

TEST_F(AgentTest, OurSocketIsForRootAlone) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  struct stat info = {};
  const std::string path = options_.kubelet_dir + "/" + kubelet_->last_request().endpoint();
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode, mode_t{S_IFSOCK | 0600});
}

TEST_F(AgentTest, MayStartBeforeKubelet) {
  const RunningAgent agent(options_);
  EXPECT_TRUE(Eventually([&] { return FolderContent().size() == 1; }));
  EXPECT_FALSE(agent.health().Ready().ok());
  kubelet_->Start();
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
}

TEST_F(AgentTest, SurvivesTwentyKubeletRestarts) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  for (int i = 0; i < 20; ++i) {
    kubelet_->Stop();
    kubelet_->Start();
    ASSERT_TRUE(kubelet_->WaitForDevices(both_)) << "restart " << i;
  }
}

TEST_F(AgentTest, SurvivesCutStreamsAndDeletedSockets) {
  options_.timing.await_stream = std::chrono::milliseconds(500);
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  std::mt19937 random(4);
  for (int i = 0; i < 15; ++i) {
    const int before = kubelet_->registrations();
    switch (random() % 3) {
      case 0:
        kubelet_->CutStream();
        break;
      case 1:
        fs::remove(options_.kubelet_dir + "/" + kubelet_->last_request().endpoint());
        break;
      default:
        kubelet_->Stop();
        kubelet_->Start();
    }
    ASSERT_TRUE(Eventually([&] { return kubelet_->registrations() > before; })) << i;
    ASSERT_TRUE(kubelet_->WaitForDevices(both_)) << i;
  }
}

TEST_F(AgentTest, TriesAgainWhenRefusedOrForgotten) {
  options_.timing.await_stream = std::chrono::milliseconds(500);
  kubelet_->RefuseRegistrations(3);
  kubelet_->ForgetStreams(2);
  kubelet_->Start();
  const RunningAgent agent(options_);
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
  // One more where a busy machine is late with the stream; registration_test.cc counts in a time of
  // its own.
  EXPECT_GE(kubelet_->registrations(), 6);
}

TEST_F(AgentTest, AStreamThatIsWellIsLeftAlone) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  // Files that come and go in the folder are no reason to register again.
  for (int i = 0; i < 20; ++i) {
    std::ofstream(options_.kubelet_dir + "/other") << i;
    fs::remove(options_.kubelet_dir + "/other");
    tree_.SetState("rxe0", i % 2 == 0 ? "1: DOWN" : "4: ACTIVE");
    ASSERT_TRUE(kubelet_->WaitFor([&](const Devices& devices) {
      return devices.at(kFirst) == (i % 2 == 0 ? "Unhealthy" : "Healthy");
    }));
  }
  EXPECT_EQ(kubelet_->registrations(), 1);
}

TEST_F(AgentTest, BadOptionsAreRefusedWithTheFlag) {
  AgentOptions bad = options_;
  bad.node_name = "";
  EXPECT_THAT(std::string(Agent::Make(bad).status().message()), HasSubstr("--node-name"));
  bad = options_;
  bad.config_file = base_ + "/agent.yaml";
  std::ofstream(bad.config_file) << "resources:\n- name: hca\n";
  EXPECT_THAT(std::string(Agent::Make(bad).status().message()), HasSubstr("agent.yaml:2"));
  bad = options_;
  bad.cdi_dir = base_ + "/none";
  EXPECT_THAT(std::string(Agent::Make(bad).status().message()), HasSubstr("--cdi-dir"));
  bad = options_;
  bad.kubelet_dir = base_ + "/none";
  EXPECT_THAT(std::string(Agent::Make(bad).status().message()), HasSubstr("--kubelet-dir"));
}

TEST_F(AgentTest, AFolderWhosePathIsTooLongIsAClearFailureAndNoCrash) {
  options_.kubelet_dir = base_ + "/" + std::string(100, 'd');
  fs::create_directories(options_.kubelet_dir);
  RunningAgent agent(options_);
  EXPECT_TRUE(Eventually(
      [&] { return absl::StrContains(agent.health().Ready().message(), "kubelet.sock"); }));
  agent.Stop();
  for (const fs::directory_entry& entry : fs::directory_iterator(options_.kubelet_dir)) {
    EXPECT_TRUE(OnlyTheRailMapIsIn(entry.path())) << entry.path();
  }
}

TEST(PodResources, TellsWhoHoldsWhat) {
  std::string folder = fs::temp_directory_path() / "railhead-pods-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  {
    const FakePodResources pods(folder + "/s", {"a", "b"});
    const auto listed = ListContainerDevices(folder + "/s", std::chrono::seconds(20));
    ASSERT_TRUE(listed.ok()) << listed.status();
    ASSERT_EQ(listed->size(), 1U);  // who holds nothing is left out
    EXPECT_EQ((*listed)[0].pod_namespace, "default");
    EXPECT_EQ((*listed)[0].pod, "busy");
    EXPECT_EQ((*listed)[0].container, "main");
    EXPECT_THAT(HeldByResource(*listed)["rdma/hca"], ElementsAre("a", "b"));
    EXPECT_THAT(HeldByResource(*listed)["rdma/none"], IsEmpty());
  }
  const absl::Status status =
      ListContainerDevices(folder + "/none", std::chrono::seconds(1)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder + "/none"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace railhead::device_plugin
