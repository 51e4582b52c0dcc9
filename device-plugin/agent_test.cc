// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/agent.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file_descriptor.h"
#include "device-plugin/cluster/node_reporter.h"
#include "device-plugin/kubelet/pod_resources.h"
#include "device-plugin/proto/deviceplugin.pb.h"
#include "device-plugin/testing/eventually.h"
#include "device-plugin/testing/fake_kubelet.h"
#include "fabric/pod_rails.h"
#include "fabric/testing/sysfs_tree.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using testing::Devices;
using ::testing::ElementsAre;
using testing::Eventually;
using testing::FakeKubelet;
using testing::FakePodResources;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

constexpr char kFirst[] = "rxe0-0000_00_03_0";
constexpr char kSecond[] = "rxe1-0000_00_04_0";

fabric::testing::FakeHca Rxe(int number) {
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
  AgentTest() : base_(fs::temp_directory_path() / "railhead-agent-XXXXXX") {
    EXPECT_NE(mkdtemp(base_.data()), nullptr);
    fs::create_directories(base_ + "/dp");
    fs::create_directories(base_ + "/scratch");
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
    kubelet_ = std::make_unique<FakeKubelet>(base_ + "/dp", base_ + "/scratch");
  }
  ~AgentTest() override {
    kubelet_.reset();
    fs::remove_all(base_);
  }

  // What is in the device plugin folder besides kubelet's socket and the rail map, which stays.
  std::vector<std::string> FolderContent() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(base_ + "/dp")) {
      const std::string name = entry.path().filename();
      if (name == "kubelet.sock") continue;
      if (name == "railhead" && OnlyTheRailMapIsIn(entry.path())) continue;
      names.push_back(name);
    }
    return names;
  }

  static bool OnlyTheRailMapIsIn(const fs::path& folder) {
    return std::all_of(fs::directory_iterator(folder), fs::directory_iterator(),
                       [](const fs::directory_entry& entry) {
                         return entry.path().filename() == "rail-map.json";
                       });
  }

  const Devices both_ = {{kFirst, "Healthy"}, {kSecond, "Healthy"}};
  // What NCCL is told in a container that gets these.
  std::string NcclHcas(const std::vector<std::string>& ids) const {
    v1beta1::AllocateResponse response;
    const grpc::Status status = kubelet_->Allocate(ids, &response);
    if (!status.ok()) return status.error_message();
    return response.container_responses(0).envs().at("NCCL_IB_HCA");
  }

  std::string base_;
  fabric::testing::SysfsTree tree_;
  AgentOptions options_;
  std::unique_ptr<FakeKubelet> kubelet_;
};

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

TEST_F(AgentTest, LeavesNothingBehindWhenNoPodUsesIt) {
  const FakePodResources pods(options_.pod_resources_socket, {});
  kubelet_->Start();
  RunningAgent agent(options_);
  ASSERT_TRUE(kubelet_->WaitForDevices(both_));
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(kubelet_->Allocate({kFirst, kSecond}, &response).ok());
  EXPECT_EQ(FolderContent().size(), 2u);
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
  ASSERT_TRUE(kubelet_->Allocate({kSecond}, &used).ok());
  ASSERT_TRUE(kubelet_->Allocate({kFirst}, &unused).ok());
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

class ConfigTest : public AgentTest {
 protected:
  // As the ConfigMap volume does it: a link is moved over the file.
  void Configure(const std::string& yaml) {
    options_.config_file = base_ + "/agent.yaml";
    const std::string version = absl::StrCat(base_, "/version-", ++versions_);
    std::ofstream(version) << yaml;
    fs::create_symlink(version, base_ + "/next");
    fs::rename(base_ + "/next", options_.config_file);
  }

 private:
  int versions_ = 0;
};

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

// An agent with an API server to tell.
class ClusterTest : public ConfigTest {
 protected:
  ClusterTest() {
    api_.Put({"v1", "nodes", "", "node-1"}, {{"metadata", {{"name", "node-1"}}}});
    reporting_.node = "node-1";
    reporting_.pause = absl::Milliseconds(1);
    reporter_ = std::make_unique<NodeReporter>(reporting_, &api_);
    options_.reporter = reporter_.get();
  }
  std::string Condition() {
    const kube::ObjectRef status = {"v1", "nodes", "", "node-1", "status"};
    if (api_.In("/api/v1/nodes/node-1").empty()) return "";
    return kube::DumpJson(api_.At(status)["status"]["conditions"][0]);
  }
  // Reason and message of all events of the node, or of a namespace.
  std::string Events(const std::string& space = "default") {
    std::string told;
    for (const kube::Json& event : api_.In("/api/v1/namespaces/" + space + "/events")) {
      absl::StrAppend(&told, kube::StringAt(event, {"involvedObject", "name"}), " ",
                      kube::StringAt(event, {"reason"}), ": ", kube::StringAt(event, {"message"}),
                      "\n");
    }
    return told;
  }
  // How often events of this reason were reported.
  int CountOf(const std::string& reason, const std::string& space = "default") {
    int count = 0;
    for (const kube::Json& event : api_.In("/api/v1/namespaces/" + space + "/events")) {
      if (event["reason"] == reason) count += event["count"].get<int>();
    }
    return count;
  }
  bool WaitForEvent(const std::string& text, const std::string& space = "default") {
    return Eventually([&] { return absl::StrContains(Events(space), text); });
  }

  kube::testing::FakeApi api_;
  NodeReporter::Options reporting_;
  std::unique_ptr<NodeReporter> reporter_;
};

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
  tree_.RemoveHca(Rxe(1));
  ASSERT_TRUE(WaitForHealth(near_, "Unhealthy"));
  fabric::testing::FakeHca anew = Rxe(1);
  anew.uverbs = 7;
  tree_.AddRxe(anew);
  ASSERT_TRUE(WaitForHealth(near_, "Healthy"));
  ASSERT_TRUE(kubelet_->PreStart({near_}).ok());
  EXPECT_THAT(Read(spec), HasSubstr("/dev/infiniband/uverbs7"));
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
  const std::string used = Allocate(near_);
  const std::string unused = Allocate(far_);
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
