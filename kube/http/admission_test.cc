// SPDX-License-Identifier: Apache-2.0
#include "kube/http/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kReview[] = R"({
  "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
  "request": {
    "uid": "705ab4f5", "kind": {"group": "batch", "version": "v1", "kind": "Job"},
    "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
    "name": "train", "namespace": "team", "operation": "CREATE",
    "object": {"spec": {"completions": 2}}, "oldObject": {"spec": {"completions": 4}},
    "dryRun": false}})";

TEST(DecodeAdmissionReviewTest, ReadsTheRequest) {
  const auto request = DecodeAdmissionReview(kReview);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->uid, "705ab4f5");
  EXPECT_EQ(request->group, "batch");
  EXPECT_EQ(request->version, "v1");
  EXPECT_EQ(request->kind, "Job");
  EXPECT_EQ(request->space, "team");
  EXPECT_EQ(request->name, "train");
  EXPECT_EQ(request->operation, "CREATE");
  EXPECT_EQ(request->object, Json::parse(R"({"spec": {"completions": 2}})"));
  EXPECT_EQ(request->before, Json::parse(R"({"spec": {"completions": 4}})"));
}

TEST(DecodeAdmissionReviewTest, RefusesWhatIsNoReview) {
  for (const char* body :
       {"", "null", "[]", "{}", R"({"kind": "AdmissionReview"})",
        R"({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"})",
        R"({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"})",
        R"({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": []})",
        R"({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "request": {"uid": 7}})"}) {
    EXPECT_EQ(DecodeAdmissionReview(body).status().code(), absl::StatusCode::kInvalidArgument)
        << body;
  }
}

// Damaged reviews are either refused or understood in part, but always answered.
TEST(DecodeAdmissionReviewTest, SurvivesDamage) {
  std::mt19937 random(1);
  const std::string review = kReview;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = review;
    for (int hits = 1 + static_cast<int>(random() % 4); hits > 0; --hits) {
      const size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, random() % 20);
          break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 20));
      }
    }
    const auto request = DecodeAdmissionReview(damaged);
    refused += request.ok() ? 0 : 1;
    EXPECT_TRUE(!request.ok() || !request->uid.empty());
  }
  EXPECT_GT(refused, 0);
}

TEST(EncodeAdmissionReviewTest, NoPatchMeansNoPatchType) {
  EXPECT_EQ(Json::parse(EncodeAdmissionReview("u1", {})), Json::parse(R"({
    "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
    "response": {"uid": "u1", "allowed": true}})"));
}

TEST(EncodeAdmissionReviewTest, PatchIsBase64) {
  AdmissionAnswer answer;
  answer.patch.push_back({{"op", "add"}, {"path", "/a"}, {"value", "\xc3\xa9"}});
  const Json response = Json::parse(EncodeAdmissionReview("u1", answer))["response"];
  EXPECT_EQ(response["patchType"], "JSONPatch");
  std::string patch;
  ASSERT_TRUE(absl::Base64Unescape(response["patch"].get<std::string>(), &patch));
  EXPECT_EQ(Json::parse(patch), answer.patch);
}

TEST(EncodeAdmissionReviewTest, WarningsFitAHeader) {
  AdmissionAnswer answer;
  std::string accents;
  for (int i = 0; i < 200; ++i) accents += "\xc3\xa9";
  answer.warnings = {"two\nlines\r\x7f", "x" + accents};
  const Json response = Json::parse(EncodeAdmissionReview("u1", answer))["response"];
  EXPECT_EQ(response["warnings"][0], "two\\nlines\\r\\x7f");
  EXPECT_EQ(response["warnings"][1].get<std::string>().size(), 240U);  // whole characters
}

TEST(AnswerAdmissionTest, AnswersReviewsAndRefusesTheRest) {
  MemoryBudget memory(1U << 20U);
  const auto decide = [](const AdmissionRequest& request) {
    return AdmissionAnswer{Json::array(), {request.kind + " seen"}};
  };
  const HttpResponse good = AnswerAdmission({"POST", "/mutate", "", kReview}, memory, decide);
  EXPECT_EQ(good.status, 200);
  EXPECT_EQ(good.content_type, "application/json");
  EXPECT_EQ(Json::parse(good.body)["response"]["warnings"][0], "Job seen");
  EXPECT_EQ(AnswerAdmission({"GET", "/mutate", "", ""}, memory, decide).status, 405);
  const HttpResponse bad = AnswerAdmission({"POST", "/mutate", "", "{"}, memory, decide);
  EXPECT_EQ(bad.status, 400);
  EXPECT_THAT(bad.body, StartsWith("not valid JSON"));
  EXPECT_THAT(AnswerAdmission({"POST", "/mutate", "", "{}"}, memory, decide).body,
              HasSubstr("admissionReviewVersions"));
}

// 4 MiB of empty lists would be 60 MiB of values.
TEST(AnswerAdmissionTest, RefusesWhatWouldTakeMoreMemoryThanThereIs) {
  MemoryBudget memory(8U << 20U);
  const auto decide = [](const AdmissionRequest& /*request*/) { return AdmissionAnswer{}; };
  std::string lists;
  while (lists.size() < 4'000'000) lists += "[],";
  const std::string review = absl::StrCat(
      R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","object":[)",
      lists, "0]}}");
  EXPECT_EQ(AnswerAdmission({"POST", "/mutate", "", review}, memory, decide).status, 413);
  const auto all = memory.Take(memory.largest_claim(), absl::ZeroDuration());
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(AnswerAdmission({"POST", "/mutate", "", kReview}, memory, decide).status, 503);
}

}  // namespace
}  // namespace railhead::kube
