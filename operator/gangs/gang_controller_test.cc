// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/gang_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/soon.h"
#include "operator/gangs/names.h"
#include "operator/gangs/testing/small_cluster.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using kube::testing::Soon;
using ::testing::HasSubstr;

// The server, which after some patches of pods is out of reach of whoever sends them: it takes
// `lost` more without an answer.
class FailingApi final : public kube::Api {
 public:
  explicit FailingApi(kube::Api* api) : api_(api) {}
  absl::StatusOr<Json> Call(const kube::ApiRequest& request) override {
    if (request.method != "PATCH" || --good >= 0) return api_->Call(request);
    if (--lost >= 0) api_->Call(request).IgnoreError();
    return absl::UnavailableError("no answer");
  }
  absl::Status Stream(const kube::StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override {
    return api_->Stream(request, on_bytes);
  }

  std::atomic<int> good{1'000'000};
  std::atomic<int> lost{0};

 private:
  kube::Api* const api_;
};

class GangControllerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 8; ++i) {
      const std::string name = absl::StrCat("n", i);
      api_.Put({"v1", "nodes", "", name},
               testing::NodeObject(name, "s0", absl::StrCat("l", i / 4)));
    }
  }
  void TearDown() override { Stop(); }

  // The fake server lists what lies directly below the collection.
  static kube::ObjectRef Pod(const std::string& name) { return {"v1", "pods", "", name}; }
  void PutPod(const testing::PodSpec& spec) {
    Json pod = testing::PodObject(spec);
    pod["metadata"].erase("namespace");
    pod["metadata"]["uid"] = absl::StrCat("u", ++serial_);
    api_.Put(Pod(spec.name), pod);
  }
  void PutJob(const std::string& name, int pods, int from = 0) {
    for (int i = from; i < pods; ++i) {
      PutPod({.name = absl::StrCat(name, "-", i),
              .gang = "true",
              .size = pods,
              .owner = name,
              .index = i});
    }
  }
  void StartLeading(bool topology = false) {
    controller_ = std::make_unique<GangController>(
        GangControllerOptions{.host = "me", .now = [this] { return Now(); }, .topology = topology},
        &failing_, [this] { return leads_.load(); });
    controller_->Start();
    thread_ = std::jthread([this](const std::stop_token& stop) { controller_->Run(stop); });
  }
  void Stop() {
    if (controller_ == nullptr) return;
    controller_->RequestStop();
    thread_.request_stop();
    thread_.join();
    controller_.reset();
  }
  absl::Time Now() const { return absl::UnixEpoch() + absl::Seconds(seconds_.load()); }

  std::string NodeOf(const std::string& pod) const {
    return kube::StringAt(api_.At(Pod(pod)), {"spec", "nodeSelector", kHostname});
  }
  int ReleasedOf(const std::string& job, int pods) const {
    int released = 0;
    for (int i = 0; i < pods; ++i) {
      if (!NodeOf(absl::StrCat(job, "-", i)).empty()) ++released;
    }
    return released;
  }
  // The last message of Events with this reason about this object.
  std::string Told(const std::string& reason, const std::string& about) const {
    std::string told;
    for (const Json& event : api_.In("/api/v1/namespaces/default/events")) {
      if (event["reason"] == reason && event["involvedObject"]["name"] == about) {
        told = event["message"];
      }
    }
    return told;
  }

  kube::testing::FakeApi api_;
  FailingApi failing_{&api_};
  std::atomic<bool> leads_{true};
  std::atomic<int> seconds_{0};  // what the clock shows
  int serial_ = 0;
  std::unique_ptr<GangController> controller_;
  std::jthread thread_;
};

TEST_F(GangControllerTest, NodesAreWherePeopleSay) {
  // By their labels n0 to n3 are one leaf, and n4 to n7 the other.
  const kube::ObjectRef fabric = {"railhead.io/v1alpha1", "fabrictopologies", "", "cluster"};
  api_.Put(fabric, Json::parse(R"({
    "apiVersion": "railhead.io/v1alpha1", "kind": "FabricTopology",
    "metadata": {"name": "cluster"}, "spec": {"model": {
      "topology": "fat-tree", "levels": ["row"], "rails": 8, "domains": [
        {"name": "r0", "nodes": [{"name": "n0", "gpus": 8, "hcas": 8},
                                 {"name": "n2", "gpus": 8, "hcas": 8},
                                 {"name": "n4", "gpus": 8, "hcas": 8}]},
        {"name": "r1", "nodes": [{"name": "n1", "gpus": 8, "hcas": 8},
                                 {"name": "n6", "gpus": 8, "hcas": 8}]}]}}})"));
  PutJob("job", 2);
  StartLeading(true);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 2) == 2; }));
  EXPECT_EQ(NodeOf("job-0"), "n1");
  EXPECT_EQ(NodeOf("job-1"), "n6");
  // Nobody says it any more: their labels do.
  api_.Remove(fabric);
  PutJob("next", 3);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("next", 3) == 3; }));
  std::vector<std::string> nodes;
  for (int i = 0; i < 3; ++i) nodes.push_back(NodeOf(absl::StrCat("next-", i)));
  EXPECT_EQ(absl::StrJoin(nodes, " "), "n0 n2 n3");
}

TEST_F(GangControllerTest, SendsAWholeGangToItsNodesAndTellsItsJob) {
  StartLeading();
  PutJob("job", 4);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4; }));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(NodeOf(absl::StrCat("job-", i)), absl::StrCat("n", i));
    const Json pod = api_.At(Pod(absl::StrCat("job-", i)));
    EXPECT_EQ(pod["metadata"]["annotations"][kRank], absl::StrCat(i));
    EXPECT_EQ(pod["spec"]["schedulingGates"], Json::array());
  }
  ASSERT_TRUE(Soon([&] { return !Told("GangPlaced", "job").empty(); }));
  EXPECT_THAT(Told("GangPlaced", "job"), HasSubstr("4 pods on 4 nodes"));
  EXPECT_EQ(controller_->Counts().placed, 1U);
}

TEST_F(GangControllerTest, WhoDoesNotLeadDoesNothing) {
  leads_ = false;
  PutJob("job", 4);
  StartLeading();
  ASSERT_TRUE(Soon([&] {
    const auto states = controller_->States();
    return std::all_of(states.begin(), states.end(),
                       [](const auto& state) { return state.synced; });
  }));
  EXPECT_EQ(ReleasedOf("job", 4), 0);
  EXPECT_EQ(controller_->Counts(), GangCounts());
  leads_ = true;
  controller_->OnLead();
  EXPECT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4; }));
}

TEST_F(GangControllerTest, AGangWithoutRoomIsToldWhyAndStartsWhenThereIs) {
  StartLeading();
  PutJob("first", 6);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("first", 6) == 6; }));
  PutJob("second", 4);
  ASSERT_TRUE(Soon([&] { return !Told("GangWaiting", "second").empty(); }));
  EXPECT_THAT(Told("GangWaiting", "second"), HasSubstr("room for 2 of 4 pods"));
  EXPECT_TRUE(Soon([&] { return controller_->Counts().waiting == 1; }));
  EXPECT_EQ(ReleasedOf("second", 4), 0);
  for (int i = 0; i < 6; ++i) api_.Remove(Pod(absl::StrCat("first-", i)));
  EXPECT_TRUE(Soon([&] { return ReleasedOf("second", 4) == 4; }));
}

TEST_F(GangControllerTest, ANewLeaderFinishesWhatTheLastOneLeftHalfDone) {
  failing_.good = 2;
  failing_.lost = 1;  // one more is done without anybody knowing
  PutJob("job", 4);
  StartLeading();
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 3; }));
  Stop();
  PutJob("other", 4);
  failing_.good = 1'000'000;
  StartLeading();
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4 && ReleasedOf("other", 4) == 4; }));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(NodeOf(absl::StrCat("job-", i)), absl::StrCat("n", i));
    EXPECT_EQ(NodeOf(absl::StrCat("other-", i)), absl::StrCat("n", i + 4));
  }
}

TEST_F(GangControllerTest, AServerThatDoesNotAnswerIsAskedAgainForTheSameNodes) {
  failing_.good = 1;
  failing_.lost = 1;
  PutJob("job", 4);
  StartLeading();
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 2; }));
  // A gang that comes meanwhile gets none of what the first one was promised.
  PutJob("other", 4);
  failing_.good = 1'000'000;
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4 && ReleasedOf("other", 4) == 4; }));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(NodeOf(absl::StrCat("job-", i)), absl::StrCat("n", i));
    EXPECT_EQ(NodeOf(absl::StrCat("other-", i)), absl::StrCat("n", i + 4));
  }
}

TEST_F(GangControllerTest, APodThatTheSchedulerRefusesComesBackAndGoesElsewhere) {
  StartLeading();
  PutJob("job", 4);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4; }));
  Json pod = api_.At(Pod("job-2"));
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  api_.Put(Pod("job-2"), pod);
  // Whatever is looked at after that pod was seen.
  PutPod({.name = "later", .gang = "later", .size = 1});
  ASSERT_TRUE(Soon([&] { return !NodeOf("later").empty(); }));
  seconds_ += 31;
  controller_->OnLead();
  ASSERT_TRUE(Soon([&] { return !Told("GangReplanned", "job").empty(); }));
  EXPECT_THAT(Told("GangReplanned", "job"), HasSubstr("pod job-2 was sent to node n2"));
  for (const Json& left : api_.In("/api/v1/pods")) EXPECT_NE(left["metadata"]["name"], "job-2");
  PutPod({.name = "job-2", .gang = "true", .size = 4, .owner = "job", .index = 2});
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4; }));
  EXPECT_NE(NodeOf("job-2"), "n2");
  EXPECT_EQ(controller_->Counts().replanned, 1U);
}

TEST_F(GangControllerTest, APodThatNobodyWouldMakeAgainIsNotDeleted) {
  StartLeading();
  PutPod({.name = "solo", .gang = "g", .size = 1});
  ASSERT_TRUE(Soon([&] { return !NodeOf("solo").empty(); }));
  Json pod = api_.At(Pod("solo"));
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  api_.Put(Pod("solo"), pod);
  PutPod({.name = "later", .gang = "later", .size = 1});
  ASSERT_TRUE(Soon([&] { return !NodeOf("later").empty(); }));
  seconds_ += 31;
  controller_->OnLead();
  ASSERT_TRUE(Soon([&] { return !Told("GangReplanned", "solo").empty(); }));
  EXPECT_THAT(Told("GangReplanned", "solo"), HasSubstr("make it again yourself"));
  EXPECT_EQ(api_.At(Pod("solo"))["metadata"]["name"], "solo");
}

}  // namespace
}  // namespace railhead::op::gangs
