// SPDX-License-Identifier: Apache-2.0
//
// Secrets of jobs on several nodes of one cluster, each with kubelet's side of its own: nobody but
// the pods of a job gets its key.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "device-plugin/agent.h"
#include "device-plugin/devices/secret_folder_name.h"
#include "device-plugin/grant/job_key.h"
#include "device-plugin/proto/deviceplugin.pb.h"
#include "device-plugin/running_agent_for_test.h"
#include "device-plugin/testing/eventually.h"
#include "device-plugin/testing/fake_kubelet.h"
#include "fabric/testing/sysfs_tree.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using kube::Json;
using testing::Eventually;
using testing::FakeKubelet;
using testing::FakePodResources;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A node with two HCAs, and its agent.
class Node {
 public:
  // `keep_files`: long enough for a pod to start on a busy machine, during which nobody tells of
  // it.
  Node(std::string base, kube::Api* api, const std::string& key_file, absl::Duration keep_files)
      : base_(std::move(base)) {
    fs::create_directories(base_ + "/dp");
    fs::create_directories(base_ + "/scratch");
    for (int i = 0; i < 2; ++i) {
      tree_.AddRxe(Rxe(i));
      ids_.push_back(absl::StrCat("rxe", i, "-0000_00_0", 3 + i, "_0"));
    }
    tree_.Write("/dev/infiniband/rdma_cm", "");
    options_.root = tree_.root();
    options_.kubelet_dir = base_ + "/dp";
    options_.pod_resources_socket = base_ + "/pods.sock";
    options_.node_name = "node";
    options_.rescan = std::chrono::milliseconds(30);
    options_.look = std::chrono::milliseconds(50);
    options_.keep_files = keep_files;
    options_.list_deadline = std::chrono::seconds(30);
    options_.settle_at_stop = absl::Milliseconds(1);
    options_.kubelet_settles = absl::ZeroDuration();
    options_.timing.settle = std::chrono::milliseconds(30);
    options_.job_key_file = key_file;
    options_.api = api;
    pods_ =
        std::make_unique<FakePodResources>(options_.pod_resources_socket, std::set<std::string>());
    pods_->Hold({});
    kubelet_ = std::make_unique<FakeKubelet>(base_ + "/dp", base_ + "/scratch");
    kubelet_->Start();
    Start();
  }
  ~Node() { Stop(); }

  void Start() {
    agent_ = std::make_unique<RunningAgent>(options_);
    ASSERT_TRUE(kubelet_->WaitForDevices({{ids_[0], "Healthy"}, {ids_[1], "Healthy"}}));
  }
  void Stop() { agent_.reset(); }

  // Kubelet's part of a pod's start with one device. Returns the folder that its container mounts;
  // "" if it mounts none.
  std::string Admit(const std::string& uid, int device) {
    v1beta1::AllocateResponse response;
    const grpc::Status status = kubelet_->Allocate({ids_[device]}, &response, "rdma/hca", uid);
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (response.container_responses_size() != 1) return "";
    const v1beta1::ContainerAllocateResponse& given = response.container_responses(0);
    for (const v1beta1::Mount& mount : given.mounts()) {
      if (mount.container_path() != kSecretFolderInPod) continue;
      EXPECT_TRUE(mount.read_only());
      return mount.host_path();
    }
    return "";
  }
  void List(const std::string& space, const std::string& pod, int device) {
    listed_.push_back({space, pod, "main", {{"rdma/hca", {ids_[device]}}}});
    pods_->Hold(listed_);
  }
  void ListNothing() {
    listed_.clear();
    pods_->Hold(listed_);
  }

 private:
  std::string base_;
  fabric::testing::SysfsTree tree_;
  std::vector<std::string> ids_;
  AgentOptions options_;
  std::vector<ContainerDevices> listed_;
  std::unique_ptr<FakePodResources> pods_;
  std::unique_ptr<FakeKubelet> kubelet_;
  std::unique_ptr<RunningAgent> agent_;
};

class AgentSecretTest : public ::testing::Test {
 protected:
  AgentSecretTest() : base_(fs::temp_directory_path() / "railhead-secret-XXXXXX") {
    EXPECT_NE(mkdtemp(base_.data()), nullptr);
    SetMaster(std::string(32, 'm'));
  }
  ~AgentSecretTest() override {
    first_.reset();
    second_.reset();
    fs::remove_all(base_);
  }

  void SetMaster(const std::string& key) const { std::ofstream(MasterFile()) << key; }
  std::string MasterFile() const { return base_ + "/master"; }

  void Boot(absl::Duration keep_files = absl::Minutes(5)) {
    first_ = std::make_unique<Node>(base_ + "/1", &api_, MasterFile(), keep_files);
    second_ = std::make_unique<Node>(base_ + "/2", &api_, MasterFile(), keep_files);
  }

  // Its uid is NAMESPACE-NAME, unless `uid` says otherwise.
  void Create(const std::string& space, const std::string& name, Json metadata,
              const std::string& uid = "") {
    metadata["namespace"] = space;
    metadata["name"] = name;
    metadata["uid"] = uid.empty() ? absl::StrCat(space, "-", name) : uid;
    api_.Put({"v1", "pods", space, name}, {{"metadata", metadata}});
  }
  static Json OfJob(const std::string& uid) {
    return {
        {"ownerReferences", Json::array({{{"kind", "Job"}, {"uid", uid}, {"controller", true}}})}};
  }
  // Starts a pod that the API server has, and returns what comes into its folder as `key`.
  static std::string KeyOf(Node& node, const std::string& space, const std::string& name,
                           int device) {
    const std::string folder = node.Admit(absl::StrCat(space, "-", name), device);
    node.List(space, name, device);
    EXPECT_NE(folder, "");
    EXPECT_TRUE(Eventually([&] { return fs::exists(folder + "/key"); }));
    return Read(folder + "/key");
  }

  std::string base_;
  kube::testing::FakeApi api_;
  std::unique_ptr<Node> first_;
  std::unique_ptr<Node> second_;
};

TEST_F(AgentSecretTest, PodsOfOneJobGetOneKeyOnAllNodesAndNoOtherPodDoes) {
  Boot();
  Create("team", "train-0", OfJob("j1"));
  Create("team", "train-1", OfJob("j1"));
  Create("team", "other-0", OfJob("j2"));
  Json forged = OfJob("j1");
  forged["annotations"] = {{"railhead.io/job", "controller/j1"}};
  Create("evil", "train-1", forged);
  const std::string key = KeyOf(*first_, "team", "train-0", 0);
  EXPECT_EQ(key, *JobKey(std::string(32, 'm'), "team", "controller/j1"));
  EXPECT_EQ(KeyOf(*second_, "team", "train-1", 0), key);
  EXPECT_NE(KeyOf(*first_, "team", "other-0", 1), key);
  EXPECT_NE(KeyOf(*second_, "evil", "train-1", 1), key);
}

TEST_F(AgentSecretTest, AKeyGoesWithItsPodAndStaysOverARestartOfTheAgent) {
  Boot(absl::Seconds(5));
  Create("team", "train-0", OfJob("j1"));
  const std::string folder = first_->Admit("team-train-0", 0);
  first_->List("team", "train-0", 0);
  ASSERT_TRUE(Eventually([&] { return fs::exists(folder + "/key"); }));
  const std::string key = Read(folder + "/key");
  first_->Stop();
  EXPECT_EQ(Read(folder + "/key"), key);
  first_->Start();
  EXPECT_EQ(Read(folder + "/key"), key);
  first_->ListNothing();
  EXPECT_TRUE(Eventually([&] { return !fs::exists(folder); }));
}

TEST_F(AgentSecretTest, AnAgentThatStartsFillsWhatTheLastOneHasNot) {
  Boot();
  const std::string folder = first_->Admit("team-train-0", 0);
  first_->List("team", "train-0", 0);
  first_->Stop();
  EXPECT_FALSE(fs::exists(folder + "/key"));
  Create("team", "train-0", OfJob("j1"));
  first_->Start();
  EXPECT_TRUE(Eventually([&] { return fs::exists(folder + "/key"); }));
}

// Kubelet lists the last holder of the devices for a while, of another tenant at worst.
TEST_F(AgentSecretTest, TheLastHolderOfADeviceDoesNotLendItsName) {
  Boot();
  Create("evil", "old", OfJob("j1"));
  Create("team", "train-0", OfJob("j2"));
  first_->List("evil", "old", 0);
  const std::string folder = first_->Admit("team-train-0", 0);
  // Several looks later nothing is there, as no listed pod has the uid.
  api_.TakeCalls();
  int asked = 0;
  ASSERT_TRUE(Eventually([&] {
    asked += static_cast<int>(api_.TakeCalls().size());
    return asked > 3;
  }));
  EXPECT_FALSE(fs::exists(folder + "/key") || fs::exists(folder + "/none"));
  first_->List("team", "train-0", 0);
  ASSERT_TRUE(Eventually([&] { return fs::exists(folder + "/key"); }));
  EXPECT_EQ(Read(folder + "/key"), *JobKey(std::string(32, 'm'), "team", "controller/j2"));
}

// A StatefulSet's pod, for example, or one that a tenant made under the name of another.
TEST_F(AgentSecretTest, APodThatWasMadeAnewUnderTheSameNameIsAnotherOne) {
  Boot();
  Create("team", "train-0", OfJob("j2"), "later");
  const std::string folder = first_->Admit("team-train-0", 0);
  first_->List("team", "train-0", 0);
  ASSERT_TRUE(Eventually([&] { return !api_.TakeCalls().empty(); }));
  EXPECT_FALSE(fs::exists(folder + "/key") || fs::exists(folder + "/none"));
}

TEST_F(AgentSecretTest, APodWithoutAJobReadsWhy) {
  Boot();
  Create("team", "alone", Json::object());
  const std::string folder = first_->Admit("team-alone", 0);
  first_->List("team", "alone", 0);
  ASSERT_TRUE(Eventually([&] { return fs::exists(folder + "/none"); }));
  EXPECT_THAT(Read(folder + "/none"), HasSubstr("the pod has no controller"));
  EXPECT_FALSE(fs::exists(folder + "/key"));
}

TEST_F(AgentSecretTest, AnApiServerThatIsAwayIsAskedAgain) {
  Boot();
  Create("team", "train-0", OfJob("j1"));
  api_.SetOutage(absl::UnavailableError("away"));
  const std::string folder = first_->Admit("team-train-0", 0);
  first_->List("team", "train-0", 0);
  ASSERT_TRUE(Eventually([&] { return !api_.TakeCalls().empty(); }));
  EXPECT_FALSE(fs::exists(folder + "/key") || fs::exists(folder + "/none"));
  api_.SetOutage(absl::OkStatus());
  EXPECT_TRUE(Eventually([&] { return fs::exists(folder + "/key"); }));
}

TEST_F(AgentSecretTest, WithoutAMasterKeyDevicesAreGivenAndTheLogSaysWhy) {
  fs::remove(MasterFile());
  ::testing::internal::CaptureStdout();
  Boot();
  EXPECT_EQ(first_->Admit("team-a", 0), "");
  SetMaster("short");
  EXPECT_EQ(first_->Admit("team-b", 1), "");
  std::fflush(stdout);
  const std::string log = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(log, HasSubstr("cannot read the master key"));
  EXPECT_THAT(log, HasSubstr("has 5 bytes, not 32 to 4096: create one with"));
  EXPECT_THAT(log, Not(HasSubstr("short")));
  SetMaster(std::string(40, 'n'));
  Create("team", "train-0", OfJob("j1"));
  EXPECT_EQ(KeyOf(*second_, "team", "train-0", 0),
            *JobKey(std::string(40, 'n'), "team", "controller/j1"));
}

TEST_F(AgentSecretTest, AChangedMasterKeyCountsForNewPods) {
  Boot();
  Create("team", "train-0", OfJob("j1"));
  Create("team", "train-1", OfJob("j1"));
  const std::string old = KeyOf(*first_, "team", "train-0", 0);
  SetMaster(std::string(32, 'n'));
  EXPECT_NE(KeyOf(*first_, "team", "train-1", 1), old);
}

}  // namespace
}  // namespace railhead::device_plugin
