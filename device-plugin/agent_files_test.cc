// SPDX-License-Identifier: Apache-2.0
//
// Files and sockets of the agent: it removes those that nobody uses, while it runs and when it
// stops, and leaves those of pods and of other plugins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file_descriptor.h"
#include "device-plugin/proto/deviceplugin.pb.h"
#include "device-plugin/running_agent_for_test.h"
#include "device-plugin/testing/eventually.h"
#include "device-plugin/testing/fake_kubelet.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::Eventually;
using testing::FakePodResources;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

TEST_F(AgentTest, LeavesNothingBehindWhenNoPodUsesIt) {
  FakePodResources pods(options_.pod_resources_socket, {});
  kubelet_->Start();
  RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kFirst, kSecond}, &response).ok());
  EXPECT_EQ(FolderContent().size(), 2u);
  kubelet_->ForgetPods();
  agent.Stop();
  EXPECT_THAT(FolderContent(), IsEmpty());
}

// Its devices are in kubelet's checkpoint alone.
TEST_F(AgentTest, LeavesTheFilesOfAPodThatHasDevicesInInitContainersOnly) {
  FakePodResources pods(options_.pod_resources_socket, {});
  pods.Hold({{"team", "init-only", "main", {}}});
  options_.collect = std::chrono::milliseconds(30);
  options_.keep_files = absl::ZeroDuration();
  kubelet_->Start();
  v1beta1::AllocateResponse response;
  {
    const RunningAgent agent(options_);
    ASSERT_TRUE(kubelet_->WaitForDevices(both_));
    ASSERT_TRUE(kubelet_->Allocate({kFirst}, &response).ok());
    absl::SleepFor(10 * absl::FromChrono(options_.collect));
  }
  const std::string path = response.container_responses(0).mounts(0).host_path();
  EXPECT_TRUE(fs::is_regular_file(path));
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  absl::SleepFor(10 * absl::FromChrono(options_.collect));
  EXPECT_TRUE(fs::is_regular_file(path));
  kubelet_->ForgetPods();
  EXPECT_TRUE(Eventually([&] { return !fs::exists(path); }));
}

TEST_F(AgentTest, RemovesTheFilesOfAPodThatItSawEnd) {
  FakePodResources pods(options_.pod_resources_socket, {});
  pods.Hold({{"team", "a", "main", {{"rdma/hca", {kFirst}}}}});
  kubelet_->Start();
  RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kFirst}, &response).ok());
  const std::string path = response.container_responses(0).mounts(0).host_path();
  // As long as the pod is there, it may start a container.
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(agent.Metrics(), "pod=\"a\""); }));
  absl::SleepFor(3 * absl::FromChrono(options_.look));
  pods.Hold({{"team", "a", "main", {}}});
  absl::SleepFor(3 * absl::FromChrono(options_.look));
  EXPECT_TRUE(fs::exists(path));
  pods.Hold({});
  agent.Stop();
  EXPECT_THAT(FolderContent(), IsEmpty());
}

// A pod that is done long before the next look at kubelet is no pod that kubelet never lists.
TEST_F(AgentTest, RemovesTheFilesOfAPodThatLivedShorterThanALook) {
  FakePodResources pods(options_.pod_resources_socket, {});
  options_.look = std::chrono::hours(1);
  kubelet_->Start();
  RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  pods.Hold({{"team", "short", "main", {{"rdma/hca", {kFirst}}}}});
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kFirst}, &response).ok());
  const int before = pods.calls();
  ASSERT_TRUE(Eventually([&] { return pods.calls() >= before + 2; }));
  pods.Hold({});
  agent.Stop();
  EXPECT_THAT(FolderContent(), IsEmpty());
}

TEST_F(AgentTest, LeavesTheFilesThatPodsUse) {
  const FakePodResources pods(options_.pod_resources_socket, {kSecond});
  kubelet_->Start();
  RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse used;
  v1beta1::AllocateResponse unused;
  ASSERT_TRUE(kubelet_->Allocate({kFirst}, &unused).ok());
  kubelet_->ForgetPods();
  ASSERT_TRUE(kubelet_->Allocate({kSecond}, &used).ok());
  agent.Stop();
  EXPECT_THAT(FolderContent(), ElementsAre("railhead"));
  EXPECT_TRUE(fs::exists(used.container_responses(0).mounts(0).host_path()));
  EXPECT_FALSE(fs::exists(unused.container_responses(0).mounts(0).host_path()));
}

TEST_F(AgentTest, LeavesAllFilesWhenKubeletDoesNotTell) {
  kubelet_->Start();
  RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kFirst}, &response).ok());
  agent.Stop();
  EXPECT_TRUE(fs::exists(response.container_responses(0).mounts(0).host_path()));
}

TEST_F(AgentTest, RemovesUnusedFilesWhileItRuns) {
  const FakePodResources pods(options_.pod_resources_socket, {});
  options_.collect = std::chrono::milliseconds(50);
  options_.keep_files = absl::Milliseconds(200);
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kFirst}, &response).ok());
  const std::string path = response.container_responses(0).mounts(0).host_path();
  kubelet_->ForgetPods();
  EXPECT_TRUE(Eventually([&] { return !fs::exists(path); }));
}

TEST_F(AgentTest, AKubeletThatHasJustStartedTakesNoFileAway) {
  auto pods = std::make_unique<FakePodResources>(options_.pod_resources_socket,
                                                 std::set<std::string>{kSecond});
  options_.collect = std::chrono::milliseconds(30);
  options_.keep_files = absl::ZeroDuration();
  options_.kubelet_settles = absl::Hours(1);
  std::ofstream(base_ + "/dp/kubelet_internal_checkpoint")
      << R"({"Data":{"PodDeviceEntries":[{"PodUID":"uid-1","ContainerName":"main",)"
      << R"("ResourceName":"rdma/hca","DeviceIDs":{"-1":[")" << kSecond << R"("]}}]}})";
  kubelet_->Start();
  RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse used;
  ASSERT_TRUE(kubelet_->Allocate({kSecond}, &used).ok());
  const std::string path = used.container_responses(0).mounts(0).host_path();
  // It knows no pod yet.
  kubelet_->Stop();
  pods.reset();
  pods = std::make_unique<FakePodResources>(options_.pod_resources_socket, std::set<std::string>());
  pods->Hold({});
  kubelet_->Start();
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(
      Eventually([&] { return std::chrono::steady_clock::now() - begin > 10 * options_.collect; }));
  EXPECT_TRUE(fs::exists(path));
  agent.Stop();
  EXPECT_TRUE(fs::exists(path));
}

// Binds a Unix socket at `path`. A process listens on it while the result is open, if `listens`.
FileDescriptor BindAt(const std::string& path, bool listens) {
  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0) << path;
  if (listens) {
    EXPECT_EQ(listen(fd.get(), 1), 0);
  }
  return fd;
}

TEST_F(AgentTest, ASecondLifeTidiesUpAfterAProcessThatWasKilled) {
  // Sockets of a killed agent: of a resource that is offered, and of one that is not configured
  // now.
  const std::string folder = options_.kubelet_dir + "/";
  BindAt(folder + "railhead-rdma-hca-1.sock", false);
  BindAt(folder + "railhead-rdma-rail-0-1764230400000000.sock", false);
  const RunningAgent agent(options_);
  EXPECT_TRUE(Eventually([&] {
    const std::vector<std::string> names = FolderContent();
    return names.size() == 1 && names[0] != "railhead-rdma-hca-1.sock" &&
           names[0].starts_with("railhead-rdma-hca-");
  })) << ::testing::PrintToString(FolderContent());
}

TEST_F(AgentTest, LeavesSocketsThatAreServedOrOtherPlugins) {
  kubelet_->Start();
  const std::string folder = options_.kubelet_dir + "/";
  // An earlier agent that has not ended yet.
  const std::string served = "railhead-rdma-rail-0-1764230400000000.sock";
  FileDescriptor earlier = BindAt(folder + served, true);
  std::vector<std::string> others = {"railhead.sock", "railhead-gpu.sock", "railhead-7.sock",
                                     "railhead-gpu-7a.sock", "example.com-gpu-7.sock"};
  for (const std::string& name : others) BindAt(folder + name, false);
  others.emplace_back("railhead-a-file-7.sock");
  std::ofstream(folder + others.back()) << "not a socket";
  BindAt(folder + "railhead-rdma-rail-1-7.sock", false);
  RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  std::vector<std::string> kept = others;
  kept.push_back(served);
  kept.push_back(kubelet_->last_request().endpoint());
  EXPECT_THAT(FolderContent(), UnorderedElementsAreArray(kept));
  earlier.Close();  // killed
  agent.Stop();
  EXPECT_THAT(FolderContent(), UnorderedElementsAreArray(others));
}

}  // namespace
}  // namespace railhead::device_plugin
