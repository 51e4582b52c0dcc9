// SPDX-License-Identifier: Apache-2.0
//
// What the agent reports to the API server about its node: rails, faults, its configuration,
// pods, and devices that hang while the agent reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/cluster/node_reporter.h"
#include "device-plugin/offer/scan.h"
#include "device-plugin/proto/deviceplugin.pb.h"
#include "device-plugin/reporting_agent_for_test.h"
#include "device-plugin/running_agent_for_test.h"
#include "device-plugin/testing/eventually.h"
#include "device-plugin/testing/fake_kubelet.h"
#include "fabric/sysfs_reader.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"

namespace railhead::device_plugin {
namespace {

using testing::Devices;
using testing::Eventually;
using testing::FakePodResources;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ClusterTest, HearsOfTheNodesRailsAndOfTheirTroubles) {
  Configure("");
  kubelet_->Start();
  const RunningAgent agent(options_);
  EXPECT_TRUE(Eventually([&] { return absl::StrContains(Condition(), "all 2 rails carry data"); }));
  EXPECT_EQ(api_.At({"v1", "nodes", "", "node-1"})["metadata"]["labels"]["railhead.io/rails"], "2");
  EXPECT_EQ(Events(), "");
  tree_.SetState("rxe1", "1: DOWN");
  EXPECT_TRUE(WaitForEvent("node-1 RailDown: rail 1 (rxe1): "));
  EXPECT_TRUE(
      Eventually([&] { return absl::StrContains(Condition(), "1 of 2 rails carry data"); }));
  tree_.SetState("rxe1", "4: ACTIVE");
  EXPECT_TRUE(WaitForEvent("node-1 RailUp: rail 1 (rxe1) carries data again"));
  EXPECT_TRUE(Eventually([&] { return absl::StrContains(Condition(), "\"True\""); }));
}

TEST_F(ClusterTest, HearsWhichRailsAreInUseWhereOthersAreFree) {
  FakePodResources pods(options_.pod_resources_socket, {});
  Configure("");
  kubelet_->Start();
  const RunningAgent agent(options_);
  const auto told = [this] {
    if (api_.In("/api/v1/nodes").empty()) return std::string("nothing");
    return kube::StringAt(api_.At({"v1", "nodes", "", "node-1"}),
                          {"metadata", "annotations", "railhead.io/rails-in-use"});
  };
  const auto holds = [&](std::vector<std::string> ids) {
    pods.Hold({{"team", "trainer", "main", {{"rdma/hca", std::move(ids)}}}});
  };
  holds({kSecond});
  EXPECT_TRUE(Eventually([&] { return told() == "1"; }));
  holds({kFirst});
  EXPECT_TRUE(Eventually([&] { return told() == "0"; }));
  holds({kFirst, kSecond});
  EXPECT_TRUE(Eventually([&] { return told().empty(); }));
}

// A node on which reading one thing does not come back for a while.
class HangTest : public ClusterTest {
 protected:
  // Threads that hang outlive the agent.
  struct Hang {
    std::mutex mutex;
    std::condition_variable changed;
    std::string what;  // "" for nothing
    int readers = 0;
  };

  HangTest() {
    options_.scan_hangs = std::chrono::milliseconds(200);
    options_.read_scan = [hang = hang_](const ScanWish& wish, fabric::KnownVpd& known,
                                        const std::function<void(const std::string&)>& reading) {
      {
        const std::lock_guard<std::mutex> lock(hang->mutex);
        ++hang->readers;
      }
      absl::StatusOr<Scan> scan = ReadScan(wish, known, [&](const std::string& what) {
        reading(what);
        std::unique_lock<std::mutex> lock(hang->mutex);
        hang->changed.wait(lock, [&] { return what.empty() || what != hang->what; });
      });
      const std::lock_guard<std::mutex> lock(hang->mutex);
      --hang->readers;
      hang->changed.notify_all();
      return scan;
    };
    Configure("");
    kubelet_->Start();
  }
  ~HangTest() override {
    SetHang("");
    std::unique_lock<std::mutex> lock(hang_->mutex);
    hang_->changed.wait(lock, [this] { return hang_->readers == 0; });
  }

  void SetHang(const std::string& what) {
    const std::lock_guard<std::mutex> lock(hang_->mutex);
    hang_->what = what;
    hang_->changed.notify_all();
  }

  // What NCCL is told in a container that gets these, when it does: on a busy machine, a NIC that
  // is not read in time is unhealthy for a moment.
  std::string NcclHcasWhenHealthy(const std::vector<std::string>& ids) {
    v1beta1::AllocateResponse response;
    EXPECT_TRUE(Eventually([&] { return kubelet_->Allocate(ids, &response).ok(); }));
    if (response.container_responses_size() != 1) return "";
    return response.container_responses(0).envs().at("NCCL_IB_HCA");
  }

  const Devices first_only_ = {{kFirst, "Healthy"}, {kSecond, "Unhealthy"}};
  FakePodResources pods_{base_ + "/pod-resources.sock", {}};

 private:
  const std::shared_ptr<Hang> hang_ = std::make_shared<Hang>();
};

TEST_F(HangTest, ANicThatHangsHoldsUpNoOther) {
  options_.repeat_events = std::chrono::milliseconds(200);
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  SetHang("rxe1");
  EXPECT_TRUE(WaitForEvent("node-1 DeviceScanHangs: reading rxe1 (0000:00:04.0) has not ended"));
  EXPECT_TRUE(Eventually([&] { return CountOf("DeviceScanHangs") >= 2; }));
  EXPECT_TRUE(kubelet_->WaitForDevices(first_only_));
  // Faults of the others are found, kubelet is served, and the configuration is taken.
  tree_.SetState("rxe0", "1: DOWN");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Unhealthy"}, {kSecond, "Unhealthy"}}));
  tree_.SetState("rxe0", "4: ACTIVE");
  kubelet_->Stop();
  kubelet_->Start();
  EXPECT_TRUE(kubelet_->WaitForDevices(first_only_));
  Configure("resources: [{name: rdma/other}]");
  EXPECT_TRUE(kubelet_->WaitForDevices(first_only_, "rdma/other"));
  SetHang("");
  EXPECT_TRUE(WaitForEvent("node-1 DeviceScanWorks: reading rxe1 (0000:00:04.0) works again"));
  EXPECT_TRUE(kubelet_->WaitForDevices(both_, "rdma/other"));
}

TEST_F(HangTest, ANicThatHangsWhenTheAgentStartsHoldsUpNoOther) {
  SetHang("rxe0");
  const RunningAgent agent(options_);
  const Devices second_only = {{kFirst, "Unhealthy"}, {kSecond, "Healthy"}};
  ASSERT_TRUE(kubelet_->WaitForDevices(second_only));
  EXPECT_TRUE(WaitForEvent("node-1 DeviceScanHangs: reading rxe0 (0000:00:03.0) has not ended"));
  EXPECT_EQ(NcclHcasWhenHealthy({kSecond}), "=rxe1:1:1") << "the rail that it has when both work";
  SetHang("");
  EXPECT_TRUE(kubelet_->WaitForDevices(both_));
  EXPECT_EQ(NcclHcasWhenHealthy({kFirst, kSecond}), "=rxe0:1:0,rxe1:1:1");
}

TEST_F(HangTest, AConfigurationThatChangesBeforeTheFirstScanIsJudgedByThat) {
  options_.scan_hangs = std::chrono::hours(1);
  SetHang("rxe0");
  const RunningAgent agent(options_);
  Configure("resources: [{name: rdma/other}]");
  ASSERT_TRUE(WaitForEvent("ConfigurationTaken: "));
  SetHang("");
  ASSERT_TRUE(kubelet_->WaitForDevices(both_, "rdma/other"));
  EXPECT_THAT(Events(), Not(HasSubstr("ResourceWithoutHcas")));
}

TEST_F(HangTest, AGpuDriverThatHangsHoldsUpNoHca) {
  const std::string gpu = "/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0";
  tree_.Write(gpu + "/class", "0x030200\n");
  tree_.Write(gpu + "/vendor", "0x10de\n");
  tree_.Link("/sys/bus/pci/devices/0000:41:00.0", "../../../.." + gpu);
  SetHang(kGpuDriver);
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  EXPECT_TRUE(WaitForEvent("node-1 DeviceScanHangs: reading /proc/driver/nvidia has not ended"));
  tree_.SetState("rxe0", "1: DOWN");
  EXPECT_TRUE(kubelet_->WaitForDevices({{kFirst, "Unhealthy"}, {kSecond, "Healthy"}}));
  SetHang("");
  EXPECT_TRUE(WaitForEvent("node-1 DeviceScanWorks: reading /proc/driver/nvidia works again"));
}

TEST_F(ClusterTest, HearsOfAWrongConfiguration) {
  Configure("");
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  EXPECT_THAT(agent.Metrics(), HasSubstr("config_refused{node=\"node-1\"} 0"));
  Configure("resources:\n- name: hca\n");
  EXPECT_TRUE(WaitForEvent("ConfigurationRefused: the new configuration is invalid"));
  EXPECT_THAT(Events(), HasSubstr("agent.yaml:2"));
  EXPECT_TRUE(Eventually(
      [&] { return absl::StrContains(agent.Metrics(), "config_refused{node=\"node-1\"} 1"); }));
  EXPECT_EQ(kubelet_->devices(), both_) << "the last good one stays";
  Configure("resources: [{name: rdma/hca, selectors: [{rails: [7]}]}]");
  EXPECT_TRUE(WaitForEvent("ResourceWithoutHcas: rdma/hca gets no HCA of this node: "));
  EXPECT_TRUE(WaitForEvent("ConfigurationTaken: "));
}

TEST_F(ClusterTest, HearsOfAConfigurationThatWasWrongFromTheStart) {
  Configure("resources: [{name: rdma/hca, selectors: [{rails: [7]}]}]");
  kubelet_->Start();
  const RunningAgent agent(options_);
  EXPECT_TRUE(WaitForEvent("ResourceWithoutHcas: rdma/hca gets no HCA of this node: "));
  EXPECT_THAT(Events(), Not(HasSubstr("ConfigurationTaken")));
}

TEST_F(ClusterTest, HearsAgainOfAWrongConfigurationThatIsTakenAgain) {
  const char* const wrong = "resources: [{name: rdma/hca, selectors: [{rails: [7]}]}]";
  Configure(wrong);
  kubelet_->Start();
  const RunningAgent agent(options_);
  EXPECT_TRUE(WaitForEvent("ResourceWithoutHcas: "));
  Configure("resources:\n- name: hca\n");
  EXPECT_TRUE(WaitForEvent("ConfigurationRefused: "));
  Configure(wrong);
  EXPECT_TRUE(WaitForEvent("ConfigurationTaken: configuration file is valid again"));
  EXPECT_TRUE(Eventually([&] { return CountOf("ResourceWithoutHcas") == 2; }));
}

// The API server deletes events after an hour.
TEST_F(ClusterTest, HearsOfAFaultAgainWhileItLasts) {
  options_.repeat_events = std::chrono::milliseconds(200);
  tree_.Write("/sys/module/ib_core/parameters/netns_mode", "N\n");
  Configure("");
  kubelet_->Start();
  const RunningAgent agent(options_);
  EXPECT_TRUE(Eventually([&] { return CountOf("RdmaNamespacesExclusive") >= 3; }));
  Configure("resources:\n- name: hca\n");
  EXPECT_TRUE(Eventually([&] { return CountOf("ConfigurationRefused") >= 3; }));
  // Both are over.
  Configure("resources: [{name: rdma/hca, network: moved}]");
  EXPECT_TRUE(WaitForEvent("ConfigurationTaken: "));
  // Events are sent in their order: what the agent tells by a later scan comes after all of these.
  tree_.SetState("rxe1", "1: DOWN");
  ASSERT_TRUE(WaitForEvent("RailDown: "));
  const int refused = CountOf("ConfigurationRefused");
  const int exclusive = CountOf("RdmaNamespacesExclusive");
  absl::SleepFor(3 * absl::FromChrono(options_.repeat_events));
  EXPECT_EQ(CountOf("ConfigurationRefused"), refused);
  EXPECT_EQ(CountOf("RdmaNamespacesExclusive"), exclusive);
}

// Most nodes of a cluster may have no RDMA devices, and nothing is wrong with its configuration.
TEST_F(ClusterTest, ANodeWithoutHcasHasNothingToSayOfTheConfiguration) {
  tree_.RemoveHca(Rxe(0));
  tree_.RemoveHca(Rxe(1));
  Configure("resources: [{name: rdma/hca, selectors: [{rails: [7]}]}]");
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(Eventually([&] { return agent.health().Ready().ok(); }));
  ASSERT_TRUE(reporter_->Flush(absl::Seconds(60)));
  EXPECT_THAT(Events(), Not(HasSubstr("ResourceWithoutHcas")));
  tree_.AddRxe(Rxe(1));
  EXPECT_TRUE(WaitForEvent("ResourceWithoutHcas: rdma/hca gets no HCA of this node: "));
}

TEST_F(ClusterTest, HearsOfAPodWhoseHcasAreNotTheNearest) {
  tree_.Write("/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0/class", "0x030200\n");
  tree_.Write("/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0/vendor", "0x10de\n");
  tree_.Write("/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0/numa_node", "1\n");
  tree_.Link("/sys/bus/pci/devices/0000:41:00.0",
             "../../../../sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0");
  std::ofstream(base_ + "/dp/kubelet_internal_checkpoint")
      << R"({"Data":{"PodDeviceEntries":[{"PodUID":"uid-1","ContainerName":"main",)"
      << R"("ResourceName":"example.com/gpu","DeviceIDs":{"-1":["0000:41:00.0"]}}]}})";
  FakePodResources pods(options_.pod_resources_socket, {});
  Configure("");
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  pods.Hold({{"team",
              "trainer",
              "main",
              {{"example.com/gpu", {"0000:41:00.0"}}, {"rdma/hca", {kFirst}}}}});
  EXPECT_TRUE(WaitForEvent("trainer HcasNotNearest: container main has GPU 0000:41:00.0", "team"));
}

TEST_F(ClusterTest, HearsOfExclusiveRdmaNamespaces) {
  tree_.Write("/sys/module/ib_core/parameters/netns_mode", "N\n");
  kubelet_->Start();
  const RunningAgent agent(options_);
  EXPECT_TRUE(WaitForEvent("RdmaNamespacesExclusive: "));
  EXPECT_THAT(Events(), HasSubstr("rdma system set netns shared"));
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(kube::StringAt(api_.At({"v1", "nodes", "", "node-1"}),
                                            {"metadata", "annotations", "railhead.io/node-facts"}),
                             R"("rdmaNamespaces":"exclusive")");
  }));
}

TEST_F(ClusterTest, HearsOfAPodWithSeveralResources) {
  std::ofstream(base_ + "/dp/kubelet_internal_checkpoint")
      << R"({"Data":{"PodDeviceEntries":[{"PodUID":"uid-1","ContainerName":"main",)"
      << R"("ResourceName":"rdma/hca","DeviceIDs":{"-1":[")" << kFirst << R"("]}}]}})";
  FakePodResources pods(options_.pod_resources_socket, {});
  Configure("resources:\n- {name: rdma/fast, selectors: [{names: [rxe1]}]}\n- {name: rdma/hca}\n");
  kubelet_->Start();
  const RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices({{kFirst, "Healthy"}}));
  pods.Hold({{"team", "trainer", "main", {{"rdma/fast", {kSecond}}, {"rdma/hca", {kFirst}}}}});
  EXPECT_TRUE(WaitForEvent(
      "trainer SeveralResources: container main has devices of rdma/fast, rdma/hca", "team"));
}

}  // namespace
}  // namespace railhead::device_plugin
