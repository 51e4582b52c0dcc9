// SPDX-License-Identifier: Apache-2.0
//
// Device nodes that are another HCA's after a reload of the driver: no container opens one in
// silence, whether it runs or starts again.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/offer/scan.h"
#include "device-plugin/proto/deviceplugin.pb.h"
#include "device-plugin/reporting_agent_for_test.h"
#include "device-plugin/running_agent_for_test.h"
#include "device-plugin/testing/eventually.h"
#include "device-plugin/testing/fake_kubelet.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using testing::Eventually;
using testing::FakePodResources;
using ::testing::HasSubstr;
using ::testing::Not;

class AgentRenumberingTest : public ClusterTest {
 protected:
  AgentRenumberingTest() {
    pods_.Hold({});
    options_.read_scan = [mutex = mutex_](const ScanWish& wish, fabric::KnownVpd& known,
                                          const std::function<void(const std::string&)>& reading) {
      const std::lock_guard<std::mutex> lock(*mutex);
      return ReadScan(wish, known, reading);
    };
  }

  static ContainerDevices Pod(const std::string& name, const std::string& id) {
    return {"team", name, "main", {{"rdma/hca", {id}}}};
  }
  // Returns the host path of the container's rails.json.
  std::string Admit(const std::string& id) {
    v1beta1::AllocateResponse response;
    const grpc::Status status = kubelet_->Allocate({id}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto& given = response.container_responses(0);
    return given.mounts_size() == 0 ? "" : given.mounts(0).host_path();
  }
  // Between two scans.
  void NumberDevices(int first, int second) const {
    const std::lock_guard<std::mutex> lock(*mutex_);
    for (const int number : {first, second}) {
      tree_.Write(absl::StrCat("/sys/class/infiniband_verbs/uverbs", number, "/ibdev"),
                  number == first ? "rxe0\n" : "rxe1\n");
    }
  }
  static bool HasMetric(const RunningAgent& agent, const std::string& line) {
    return Eventually([&] { return absl::StrContains(agent.Metrics(), line); });
  }
  // By its first labels: pods come last.
  static bool IsRenumbered(const RunningAgent& agent, int rail, bool is) {
    return Eventually([&] {
      const std::string page = agent.Metrics();
      const std::string begin = absl::StrCat(R"(railhead_device_renumbered{node="node-1",rail=")",
                                             rail, R"(",device="rxe)", rail);
      const size_t at = page.find(begin);
      if (at == std::string::npos) return false;
      const std::string line = page.substr(at, page.find('\n', at) - at);
      return line.ends_with(is ? "} 1" : "} 0");
    });
  }

  const testing::Devices none_ = {{kFirst, "Unhealthy"}, {kSecond, "Unhealthy"}};
  const std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
  FakePodResources pods_{base_ + "/pod-resources.sock", {}};
};

TEST_F(AgentRenumberingTest, TwoPodsNeverHaveOneNicInSilence) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  Admit(kFirst);
  Admit(kSecond);
  pods_.Hold({Pod("a", kFirst), Pod("b", kSecond)});
  EXPECT_TRUE(kubelet_->PreStart({kFirst}).ok());
  EXPECT_TRUE(kubelet_->PreStart({kSecond}).ok());
  EXPECT_TRUE(IsRenumbered(agent, 0, false));

  NumberDevices(1, 0);
  // Both run, and each can open the other's: the pods' status, the node, its condition, Events and
  // metrics tell.
  EXPECT_TRUE(kubelet_->WaitForDevices(none_));
  EXPECT_TRUE(WaitForEvent("a DeviceRenumbered: device nodes have changed: " + std::string(kFirst) +
                               " was given as rxe0 (/dev/infiniband/uverbs0), and is now rxe0 "
                               "(/dev/infiniband/uverbs1)",
                           "team"));
  EXPECT_TRUE(WaitForEvent("b DeviceRenumbered: ", "team"));
  EXPECT_THAT(Events("team"), HasSubstr("delete the pod"));
  EXPECT_TRUE(WaitForEvent("node-1 RailDown: rail 0 (rxe0): container main of pod team/"));
  EXPECT_TRUE(Eventually([&] { return absl::StrContains(Condition(), "delete that pod"); }));
  EXPECT_TRUE(IsRenumbered(agent, 0, true));
  EXPECT_TRUE(IsRenumbered(agent, 1, true));
  // A container that starts again is refused.
  const grpc::Status refused = kubelet_->PreStart({kFirst});
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  for (const char* part : {kFirst, "uverbs0", "uverbs1", "delete the pod"}) {
    EXPECT_THAT(refused.error_message(), HasSubstr(part));
  }
  v1beta1::AllocateResponse response;
  EXPECT_EQ(kubelet_->Allocate({kSecond}, &response).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);

  // One has ended, and the other can still open its NIC.
  pods_.Hold({Pod("a", kFirst)});
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(Condition(), "can open it") &&
           !absl::StrContains(Condition(), "team/b");
  })) << Condition();
  EXPECT_EQ(kubelet_->devices(), none_);
  pods_.Hold({});
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
  EXPECT_TRUE(IsRenumbered(agent, 1, false));
  Admit(kFirst);
  EXPECT_TRUE(kubelet_->PreStart({kFirst}).ok());
}

TEST_F(AgentRenumberingTest, AnAgentThatIsReplacedKnowsWhatWasGiven) {
  kubelet_->Start();
  {
    const RunningAgent agent(options_);
    ASSERT_TRUE(kubelet_->WaitForDevices(both_));
    Admit(kFirst);
    pods_.Hold({Pod("a", kFirst)});
  }
  NumberDevices(1, 0);
  const RunningAgent agent(options_);
  EXPECT_TRUE(kubelet_->WaitForDevices(none_));
  EXPECT_FALSE(kubelet_->PreStart({kFirst}).ok());
  // The numbers are as they were.
  NumberDevices(0, 1);
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
  EXPECT_TRUE(kubelet_->PreStart({kFirst}).ok());
}

// Kubelet does not list its devices, so only its starts are checked.
TEST_F(AgentRenumberingTest, AnInitContainerIsRefusedAsWell) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  Admit(kFirst);
  pods_.Hold({{"team", "a", "main", {}}});
  NumberDevices(1, 0);
  EXPECT_TRUE(Eventually([&] { return !kubelet_->PreStart({kFirst}).ok(); }));
}

// It was given by an agent that stored nothing, or kubelet's files are lost.
TEST_F(AgentRenumberingTest, AContainerOfWhichNothingIsStoredStartsAndIsCounted) {
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  pods_.Hold({Pod("a", kFirst), Pod("b", kSecond)});
  ::testing::internal::CaptureStdout();
  EXPECT_TRUE(kubelet_->PreStart({kFirst}).ok());
  const std::string rails = Admit(kSecond);
  EXPECT_TRUE(HasMetric(agent, "railhead_agent_unverified_starts_total{node=\"node-1\"} 1\n"));
  fs::remove(rails);
  EXPECT_TRUE(kubelet_->PreStart({kSecond}).ok());
  EXPECT_TRUE(kubelet_->PreStart({kSecond}).ok());
  EXPECT_TRUE(HasMetric(agent, "railhead_agent_unverified_starts_total{node=\"node-1\"} 3\n"));
  std::fflush(stdout);
  const std::string log = ::testing::internal::GetCapturedStdout();
  const std::string line = absl::StrCat("a container starts with ", kSecond);
  const size_t at = log.find(line);
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find(line, at + 1), std::string::npos) << "once is enough";
}

// With CDI a container has the device nodes of its last start.
TEST_F(AgentRenumberingTest, WithCdiAContainerThatStartsAgainIsWell) {
  options_.cdi_dir = base_ + "/cdi";
  fs::create_directories(options_.cdi_dir);
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  Admit(kFirst);
  pods_.Hold({Pod("a", kFirst)});
  ASSERT_TRUE(kubelet_->PreStart({kFirst}).ok());
  NumberDevices(1, 0);
  EXPECT_TRUE(kubelet_->WaitForDevices(none_));
  EXPECT_TRUE(WaitForEvent("a DeviceRenumbered: ", "team"));
  EXPECT_TRUE(IsRenumbered(agent, 1, true));
  EXPECT_TRUE(kubelet_->PreStart({kFirst}).ok());
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
  EXPECT_TRUE(IsRenumbered(agent, 1, false));
  // A boot empties the folder of specs, so no container of it runs.
  NumberDevices(0, 1);
  EXPECT_TRUE(kubelet_->WaitForDevices(none_));
  for (const fs::directory_entry& spec : fs::directory_iterator(options_.cdi_dir)) {
    fs::remove(spec.path());
  }
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
}

// CDI was switched on while it ran.
TEST_F(AgentRenumberingTest, PlainDeviceNodesAreComparedWithCdiToo) {
  kubelet_->Start();
  {
    const RunningAgent agent(options_);
    ASSERT_TRUE(kubelet_->WaitForDevices(both_));
    Admit(kFirst);
    pods_.Hold({Pod("a", kFirst)});
  }
  options_.cdi_dir = base_ + "/cdi";
  fs::create_directories(options_.cdi_dir);
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  EXPECT_TRUE(kubelet_->PreStart({kFirst}).ok());
  NumberDevices(1, 0);
  EXPECT_TRUE(kubelet_->WaitForDevices(none_));
  EXPECT_THAT(kubelet_->PreStart({kFirst}).error_message(), HasSubstr("delete the pod"));
}

}  // namespace
}  // namespace railhead::device_plugin
