// SPDX-License-Identifier: Apache-2.0
//
// A whole agent on a node with two HCAs, rxe0 and rxe1, beside a kubelet that tests play.
#ifndef RAILHEAD_DEVICE_PLUGIN_RUNNING_AGENT_FOR_TEST_H_
#define RAILHEAD_DEVICE_PLUGIN_RUNNING_AGENT_FOR_TEST_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "device-plugin/agent.h"
#include "device-plugin/cluster/health.h"
#include "device-plugin/proto/deviceplugin.pb.h"
#include "device-plugin/testing/fake_kubelet.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {

inline constexpr char kFirst[] = "rxe0-0000_00_03_0";
inline constexpr char kSecond[] = "rxe1-0000_00_04_0";

inline fabric::testing::FakeHca Rxe(int number) {
  fabric::testing::FakeHca rxe;
  rxe.name = absl::StrCat("rxe", number);
  rxe.rate = "2.5 Gb/sec (1X SDR)";
  rxe.link_layer = "Ethernet";
  rxe.uverbs = number;
  rxe.pci = absl::StrCat("0000:00:0", 3 + number, ".0");
  rxe.numa_node = number == 0 ? "-1" : "1";
  rxe.netdev = absl::StrCat("eth", 1 + number);
  return rxe;
}

// An agent that runs until it is stopped or goes out of scope.
class RunningAgent {
 public:
  explicit RunningAgent(const AgentOptions& options) : stop_fd_(eventfd(0, EFD_CLOEXEC)) {
    absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Make(options);
    EXPECT_TRUE(agent.ok()) << agent.status();
    if (!agent.ok()) return;
    agent_ = *std::move(agent);
    thread_ = std::thread([this] { agent_->Run(stop_fd_); });
  }
  ~RunningAgent() {
    Stop();
    close(stop_fd_);
  }

  void Stop() {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    EXPECT_EQ(write(stop_fd_, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    thread_.join();
  }

  const Health& health() const { return agent_->health(); }
  std::string Metrics() const { return agent_->Metrics(); }

 private:
  const int stop_fd_;
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
};

class AgentTest : public ::testing::Test {
 protected:
  // A short name: the paths of sockets are limited.
  AgentTest() : base_(std::filesystem::temp_directory_path() / "a-XXXXXX") {
    EXPECT_NE(mkdtemp(base_.data()), nullptr);
    std::filesystem::create_directories(base_ + "/dp");
    std::filesystem::create_directories(base_ + "/scratch");
    tree_.AddRxe(Rxe(0));
    tree_.AddRxe(Rxe(1));
    tree_.Write("/dev/infiniband/rdma_cm", "");
    options_.root = tree_.root();
    options_.kubelet_dir = base_ + "/dp";
    options_.pod_resources_socket = base_ + "/pod-resources.sock";
    options_.node_name = "node-1";
    options_.rescan = std::chrono::milliseconds(30);
    options_.settle_at_stop = absl::Milliseconds(1);
    options_.kubelet_settles = absl::ZeroDuration();
    options_.look = std::chrono::milliseconds(100);
    options_.flap_damper.recover = std::chrono::milliseconds(100);
    options_.flap_damper.recover_flapping = std::chrono::milliseconds(100);
    options_.timing.settle = std::chrono::milliseconds(30);
    options_.timing.first_retry = std::chrono::milliseconds(30);
    options_.timing.last_retry = std::chrono::milliseconds(300);
    options_.list_deadline = std::chrono::seconds(30);  // busy machines are slow
    options_.timing.poll = std::chrono::milliseconds(200);
    kubelet_ = std::make_unique<testing::FakeKubelet>(base_ + "/dp", base_ + "/scratch");
  }
  ~AgentTest() override {
    kubelet_.reset();
    std::filesystem::remove_all(base_);
  }

  // Files in the device plugin folder, without kubelet's own and the rail map, which stays.
  std::vector<std::string> FolderContent() const {
    std::vector<std::string> names;
    for (const std::filesystem::directory_entry& entry :
         std::filesystem::directory_iterator(base_ + "/dp")) {
      const std::string name = entry.path().filename();
      if (name == "kubelet.sock" || name == "kubelet_internal_checkpoint") continue;
      if (name == "railhead" && OnlyTheRailMapIsIn(entry.path())) continue;
      names.push_back(name);
    }
    return names;
  }

  static bool OnlyTheRailMapIsIn(const std::filesystem::path& folder) {
    return std::all_of(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator(),
                       [](const std::filesystem::directory_entry& entry) {
                         return entry.path().filename() == "rail-map.json";
                       });
  }

  const testing::Devices both_ = {{kFirst, "Healthy"}, {kSecond, "Healthy"}};
  // NCCL_IB_HCA in a container that gets these.
  std::string NcclHcas(const std::vector<std::string>& ids) const {
    v1beta1::AllocateResponse response;
    const grpc::Status status = kubelet_->Allocate(ids, &response);
    if (!status.ok()) return status.error_message();
    return response.container_responses(0).envs().at("NCCL_IB_HCA");
  }

  std::string base_;
  fabric::testing::SysfsTree tree_;
  AgentOptions options_;
  std::unique_ptr<testing::FakeKubelet> kubelet_;
};

// With a configuration.
class ConfigTest : public AgentTest {
 protected:
  // As the ConfigMap volume does it: a link is moved over the file.
  void Configure(const std::string& yaml) {
    options_.config_file = base_ + "/agent.yaml";
    const std::string version = absl::StrCat(base_, "/version-", ++versions_);
    std::ofstream(version) << yaml;
    std::filesystem::create_symlink(version, base_ + "/next");
    std::filesystem::rename(base_ + "/next", options_.config_file);
  }

 private:
  int versions_ = 0;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_RUNNING_AGENT_FOR_TEST_H_
