// SPDX-License-Identifier: Apache-2.0
#include "operator/control/webhook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "kube/json.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::HasSubstr;
using ::testing::Not;

Json Review(const std::string& group, const std::string& kind, const std::string& operation,
            const std::string& object) {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "u1"},
            {"kind", {{"group", group}, {"version", "v1"}, {"kind", kind}}},
            {"operation", operation},
            {"namespace", "team"},
            {"object", Json::parse(object)}}}};
}

constexpr char kAskingPod[] = R"({"metadata": {"generateName": "p-"}, "spec": {"containers": [
  {"name": "c", "resources": {"limits": {"rdma/hca": "1"}}}]}})";
constexpr char kAskingJob[] = R"({"metadata": {"name": "j"}, "spec": {"completionMode": "Indexed",
  "completions": 2, "parallelism": 2, "template": {"spec": {"subdomain": "s", "containers": [
  {"name": "c", "resources": {"limits": {"rdma/hca": "1"}}}]}}}})";

class WebhookTest : public ::testing::Test {
 protected:
  Json Post(const Json& review) {
    const kube::HttpResponse response =
        webhook_.Handle({"POST", "/mutate", "application/json", review.dump()});
    EXPECT_EQ(response.status, 200) << response.body;
    const Json answer = Json::parse(response.body)["response"];
    EXPECT_EQ(answer["uid"], "u1");
    EXPECT_EQ(answer["allowed"], true);
    return answer;
  }
  static Json PatchOf(const Json& answer) {
    std::string patch;
    EXPECT_TRUE(absl::Base64Unescape(answer.value("patch", ""), &patch));
    return patch.empty() ? Json::array() : Json::parse(patch);
  }

  Metrics metrics_;
  // As it is at the moment of a request.
  std::shared_ptr<const ProfileSet> profiles_ = std::make_shared<const ProfileSet>();
  Webhook webhook_{InjectionConfig(), [this] { return profiles_; }, &metrics_};
};

TEST_F(WebhookTest, MutatesPodsAndJobs) {
  EXPECT_EQ(PatchOf(Post(Review("", "Pod", "CREATE", kAskingPod)))[0]["path"],
            "/spec/containers/0/env");
  EXPECT_EQ(PatchOf(Post(Review("batch", "Job", "CREATE", kAskingJob)))[0]["path"],
            "/spec/template/metadata");
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("railhead_admission_requests_total{kind=\"Pod\",result=\"mutated\"} 1"));
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("railhead_admission_requests_total{kind=\"Job\",result=\"mutated\"} 1"));
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("railhead_admission_duration_seconds_count{kind=\"Pod\"} 1"));
}

TEST_F(WebhookTest, StampsJobsAnewWhoseSizeChanges) {
  Json before = Json::parse(kAskingJob);
  before["spec"]["suspend"] = true;
  before.patch_inplace(PatchOf(Post(Review("batch", "Job", "CREATE", before.dump()))));
  Json after = before;
  after["spec"]["completions"] = 4;
  Json review = Review("batch", "Job", "UPDATE", after.dump());
  review["request"]["oldObject"] = before;
  EXPECT_EQ(PatchOf(Post(review)), Json::parse(R"([{"op": "add", "value": "4",
              "path": "/spec/template/metadata/annotations/railhead.io~1world-size"}])"));
}

TEST_F(WebhookTest, UsesTheProfilesOfTheMomentAndTheRequestsNamespace) {
  auto set = std::make_shared<ProfileSet>();
  set->profiles.resize(1);
  set->profiles[0].name = "p";
  set->profiles[0].generation = 4;
  set->profiles[0].namespaces.labels = {{"kubernetes.io/metadata.name", "team"}};
  const auto stamp = [&] {
    Json pod = Json::parse(kAskingPod);
    pod.patch_inplace(PatchOf(Post(Review("", "Pod", "CREATE", kAskingPod))));
    return kube::StringAt(pod, {"metadata", "annotations", "railhead.io/profile"});
  };
  EXPECT_EQ(stamp(), "");
  profiles_ = set;
  EXPECT_EQ(stamp(), "p@4");
}

TEST_F(WebhookTest, DoesNotAnswerForProfilesThatItDoesNotKnow) {
  profiles_ = nullptr;
  const kube::HttpRequest request = {"POST", "/mutate", "application/json",
                                     Review("", "Pod", "CREATE", kAskingPod).dump()};
  EXPECT_EQ(webhook_.Handle(request).status, 503);
  EXPECT_THAT(metrics_.Text(), HasSubstr("result=\"refused\"} 1"));
  profiles_ = std::make_shared<const ProfileSet>();
  EXPECT_EQ(webhook_.Handle(request).status, 200);
}

TEST_F(WebhookTest, LeavesEverythingElseAlone) {
  EXPECT_EQ(PatchOf(Post(Review("", "Pod", "UPDATE", kAskingPod))), Json::array());
  EXPECT_EQ(PatchOf(Post(Review("", "Pod", "DELETE", "null"))), Json::array());
  EXPECT_EQ(PatchOf(Post(Review("example.com", "Pod", "CREATE", kAskingPod))), Json::array());
  EXPECT_EQ(PatchOf(Post(Review("apps", "Deployment", "CREATE", kAskingJob))), Json::array());
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("railhead_admission_requests_total{kind=\"other\",result=\"ignored\"} 2"));
}

TEST_F(WebhookTest, AdmitsWithAWarningWhatItCannotUnderstand) {
  for (const char* object : {"null", "7", "[]", R"({"spec": {"containers": 1}})"}) {
    const Json answer = Post(Review("", "Pod", "CREATE", object));
    EXPECT_EQ(answer.count("patch"), 0U);
    EXPECT_THAT(answer["warnings"][0].get<std::string>(), HasSubstr("admitted unchanged"));
  }
  EXPECT_THAT(metrics_.Text(), HasSubstr("result=\"not_understood\"} 4"));
}

TEST_F(WebhookTest, RefusesOtherPathsAndBodies) {
  EXPECT_EQ(webhook_.Handle({"POST", "/other", "application/json", "{}"}).status, 404);
  EXPECT_EQ(webhook_.Handle({"GET", "/mutate", "", ""}).status, 405);
  EXPECT_EQ(webhook_.Handle({"POST", "/mutate", "application/json", "{"}).status, 400);
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("railhead_admission_requests_total{kind=\"other\",result=\"refused\"} 2"));
}

}  // namespace
}  // namespace railhead::op
