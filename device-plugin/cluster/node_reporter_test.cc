// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/node_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/cluster/node_facts.h"
#include "kube/events.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/soon.h"

namespace railhead::device_plugin {
namespace {

using kube::Json;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const kube::ObjectRef kNode = {"v1", "nodes", "", "node-1"};
const kube::ObjectRef kStatus = {"v1", "nodes", "", "node-1", "status"};
const kube::ObjectRef kPod = {"v1", "pods", "railhead", "agent-x"};
const kube::ObjectRef kFeature = {"nfd.k8s-sigs.io/v1alpha1", "nodefeatures", "railhead",
                                  "railhead-node-1"};
constexpr char kEvents[] = "/api/v1/namespaces/default/events";

NodeFacts Facts(const std::string& rails, bool ready) {
  NodeFacts facts;
  facts.labels = {{"railhead.io/rails", rails}};
  facts.annotation = "{}";
  facts.condition = {ready, ready ? "AllRailsUp" : "RailsDown", "because"};
  return facts;
}

class NodeReporterTest : public ::testing::Test {
 protected:
  NodeReporterTest() {
    api_.Put(kNode, {{"metadata", {{"name", "node-1"}}}});
    options_.node = "node-1";
    options_.pause = absl::Milliseconds(1);
    options_.first_retry = absl::Milliseconds(5);
  }
  void Start() { reporter_ = std::make_unique<NodeReporter>(options_, &api_); }
  bool Flush() { return reporter_->Flush(absl::Seconds(60)); }
  Json Condition() { return api_.At(kStatus)["status"]["conditions"][0]; }

  kube::testing::FakeApi api_;
  NodeReporter::Options options_;
  std::unique_ptr<NodeReporter> reporter_;
};

TEST_F(NodeReporterTest, WritesLabelsAnnotationAndCondition) {
  Start();
  reporter_->Publish(Facts("2", true));
  ASSERT_TRUE(Flush());
  EXPECT_EQ(api_.At(kNode)["metadata"]["labels"], Json({{"railhead.io/rails", "2"}}));
  EXPECT_EQ(api_.At(kNode)["metadata"]["annotations"], Json({{"railhead.io/node-facts", "{}"}}));
  EXPECT_EQ(Condition()["type"], "RailheadRailsReady");
  EXPECT_EQ(Condition()["status"], "True");
  EXPECT_EQ(Condition()["reason"], "AllRailsUp");
  EXPECT_EQ(Condition()["message"], "because");
}

TEST_F(NodeReporterTest, WritesOnlyChanges) {
  Start();
  reporter_->Publish(Facts("2", true));
  ASSERT_TRUE(Flush());
  api_.TakeCalls();
  reporter_->Publish(Facts("2", true));
  ASSERT_TRUE(Flush());
  EXPECT_THAT(api_.TakeCalls(), IsEmpty());
  reporter_->Publish(Facts("3", true));
  ASSERT_TRUE(Flush());
  EXPECT_EQ(api_.At(kNode)["metadata"]["labels"]["railhead.io/rails"], "3");
}

TEST_F(NodeReporterTest, WhatChangesOftenCostsOneCall) {
  Start();
  reporter_->Publish(Facts("2", true));
  ASSERT_TRUE(Flush());
  api_.TakeCalls();
  NodeFacts facts = Facts("2", true);
  facts.rails_in_use = "0,1";
  reporter_->Publish(facts);
  ASSERT_TRUE(Flush());
  EXPECT_EQ(api_.TakeCalls().size(), 1U);
  EXPECT_EQ(api_.At(kNode)["metadata"]["annotations"]["railhead.io/rails-in-use"], "0,1");
  EXPECT_EQ(Condition()["status"], "True");
  reporter_->Publish(Facts("2", true));
  ASSERT_TRUE(Flush());
  EXPECT_FALSE(api_.At(kNode)["metadata"]["annotations"].contains("railhead.io/rails-in-use"));
}

TEST_F(NodeReporterTest, AConditionKeepsSinceWhenItIs) {
  Json node = api_.At(kNode);
  node["status"]["conditions"] = {{{"type", "Ready"}, {"status", "True"}},
                                  {{"type", "RailheadRailsReady"},
                                   {"status", "True"},
                                   {"lastTransitionTime", "2020-01-01T00:00:00Z"}}};
  api_.Put(kNode, node);
  Start();
  reporter_->Publish(Facts("2", true));
  ASSERT_TRUE(Flush());
  EXPECT_EQ(Condition()["lastTransitionTime"], "2020-01-01T00:00:00Z")
      << "written before our start";
  reporter_->Publish(Facts("2", false));
  ASSERT_TRUE(Flush());
  const std::string since = Condition()["lastTransitionTime"];
  EXPECT_NE(since, "2020-01-01T00:00:00Z");
  NodeFacts other = Facts("2", false);
  other.condition->message = "another rail too";
  reporter_->Publish(other);
  ASSERT_TRUE(Flush());
  EXPECT_EQ(Condition()["lastTransitionTime"], since);
  EXPECT_EQ(Condition()["message"], "another rail too");
}

TEST_F(NodeReporterTest, ANodeWithoutRdmaIsCleared) {
  Start();
  reporter_->Publish(Facts("2", true));
  ASSERT_TRUE(Flush());
  reporter_->Publish(NodeFacts{});
  ASSERT_TRUE(Flush());
  EXPECT_FALSE(api_.At(kNode)["metadata"].contains("labels"));
  EXPECT_FALSE(api_.At(kNode)["metadata"].contains("annotations"));
  EXPECT_THAT(api_.At(kStatus)["status"], IsEmpty());
}

TEST_F(NodeReporterTest, AnOutageLosesNothing) {
  api_.SetOutage(absl::UnavailableError("no connection"));
  Start();
  reporter_->Publish(Facts("2", true));
  kube::Event event;
  event.reason = "RailDown";
  reporter_->Tell(event);
  EXPECT_FALSE(reporter_->Flush(absl::Milliseconds(50)));
  EXPECT_FALSE(reporter_->UpToDate());
  reporter_->Publish(Facts("3", false));
  api_.SetOutage(absl::OkStatus());
  ASSERT_TRUE(Flush());
  EXPECT_EQ(api_.At(kNode)["metadata"]["labels"]["railhead.io/rails"], "3");
  ASSERT_THAT(api_.In(kEvents), SizeIs(1));
  EXPECT_EQ(api_.In(kEvents)[0]["involvedObject"]["name"], "node-1");
}

TEST_F(NodeReporterTest, AnEventThatWaitsKeepsItsTime) {
  api_.SetOutage(absl::UnavailableError("no connection"));
  Start();
  kube::Event event;
  event.reason = "RailDown";
  reporter_->Tell(event);
  const absl::Time happened = absl::Now();
  absl::SleepFor(absl::Seconds(2));
  api_.SetOutage(absl::OkStatus());
  ASSERT_TRUE(Flush());
  ASSERT_THAT(api_.In(kEvents), SizeIs(1));
  absl::Time told;
  ASSERT_TRUE(absl::ParseTime(
      absl::RFC3339_full, kube::StringAt(api_.In(kEvents)[0], {"lastTimestamp"}), &told, nullptr));
  EXPECT_LE(told, happened);
}

TEST_F(NodeReporterTest, WhatIsRefusedForGoodDoesNotBlockTheRest) {
  api_.SetOutage(absl::PermissionDeniedError("events may not be created"));
  Start();
  kube::Event event;
  event.reason = "RailDown";
  reporter_->Tell(event);
  ASSERT_TRUE(Flush());
  api_.SetOutage(absl::OkStatus());
  reporter_->Publish(Facts("2", true));
  ASSERT_TRUE(Flush());
  EXPECT_THAT(api_.In(kEvents), IsEmpty());
  EXPECT_EQ(Condition()["status"], "True");
}

TEST_F(NodeReporterTest, OnlyTheNewestEventsWait) {
  api_.SetOutage(absl::UnavailableError("no connection"));
  Start();
  for (int i = 0; i < 200; ++i) {
    kube::Event event;
    event.reason = absl::StrCat("R", i);
    reporter_->Tell(event);
  }
  api_.SetOutage(absl::OkStatus());
  ASSERT_TRUE(Flush());
  EXPECT_THAT(api_.In(kEvents), SizeIs(25)) << "the recorder's limit";
}

TEST_F(NodeReporterTest, WritesAgainWhatSomebodyHasChanged) {
  options_.resync = absl::Milliseconds(20);
  Start();
  reporter_->Publish(Facts("2", true));
  ASSERT_TRUE(Flush());
  api_.Put(kNode, {{"metadata", {{"name", "node-1"}}}});
  ASSERT_TRUE(
      kube::testing::Soon([this] { return api_.At(kNode)["metadata"].contains("labels"); }));
  EXPECT_EQ(api_.At(kNode)["metadata"]["labels"]["railhead.io/rails"], "2");
}

TEST_F(NodeReporterTest, GivesNfdAFeatureThatEndsWithTheDaemonSet) {
  options_.space = "railhead";
  options_.pod = "agent-x";
  api_.Put(kPod, {{"metadata",
                   {{"ownerReferences",
                     {{{"apiVersion", "apps/v1"},
                       {"kind", "DaemonSet"},
                       {"name", "agent"},
                       {"uid", "u"},
                       {"blockOwnerDeletion", true},
                       {"controller", true}}}}}}});
  Start();
  reporter_->Publish(Facts("2", true));
  ASSERT_TRUE(Flush());
  const Json feature = api_.At(kFeature);
  EXPECT_EQ(feature["metadata"]["labels"]["nfd.node.kubernetes.io/node-name"], "node-1");
  EXPECT_EQ(
      feature["metadata"]["ownerReferences"],
      Json({{{"apiVersion", "apps/v1"}, {"kind", "DaemonSet"}, {"name", "agent"}, {"uid", "u"}}}));
  EXPECT_EQ(feature["spec"]["features"]["attributes"]["railhead.node"]["elements"],
            Json({{"rails", "2"}}));
}

TEST_F(NodeReporterTest, EndsWhileTheServerIsAway) {
  api_.SetOutage(absl::UnavailableError("no connection"));
  options_.first_retry = absl::Hours(1);
  Start();
  reporter_->Publish(Facts("2", true));
  reporter_.reset();
  EXPECT_THAT(api_.In(kEvents), IsEmpty());
}

}  // namespace
}  // namespace railhead::device_plugin
