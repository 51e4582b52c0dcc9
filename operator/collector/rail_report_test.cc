// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/rail_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::op {
namespace {

using kube::Json;
using verdict::MakeFinding;
using verdict::PodFinding;
using verdict::Reason;

const JobName kJob = {"team", "Job", "train", "uid-job", "batch/v1", true, true};

verdict::JobFacts FactsOf(int pods) {
  verdict::JobFacts facts;
  for (int i = 0; i < pods; ++i) {
    auto pod = std::make_shared<verdict::PodFacts>();
    pod->name = absl::StrCat("train-", i);
    pod->uid = absl::StrCat("uid-", i);
    pod->metrics_port = 9402;
    pod->running_since = absl::UnixEpoch();
    facts.pods.emplace_back().pod = pod;
  }
  return facts;
}

PodFinding NotUsed(int pod) {
  return MakeFinding(Reason::kRdmaNotUsed, absl::StrCat("train-", pod), "", {"no rails"});
}
PodFinding Outdated(int pod) {
  return MakeFinding(Reason::kProfileOutdated, absl::StrCat("train-", pod), "", {"h100", "1", "2"});
}

TEST(RailReportTest, SaysOfEachReasonHowManyPodsAndTheFixWarningsFirst) {
  const RailReport report = ReportOf(
      kJob, FactsOf(8), {NotUsed(0), NotUsed(1), NotUsed(2), NotUsed(3), NotUsed(3), Outdated(7)});
  EXPECT_EQ(report.space, "team");
  EXPECT_EQ(report.name, "job-train");
  EXPECT_EQ(report.owners, Json::parse(R"([{"apiVersion": "batch/v1", "kind": "Job",
                                            "name": "train", "uid": "uid-job"}])"));
  EXPECT_FALSE(report.is_clear);
  EXPECT_TRUE(report.is_certain);
  EXPECT_EQ(report.status, Json::parse(R"json({
      "severity": "Warning", "pods": 8,
      "summary": "RdmaNotUsed: 4 pods, RailProfileOutdated: 1 pod",
      "reasons": [
        {"reason": "RdmaNotUsed", "severity": "Warning", "pods": 4,
         "examples": ["train-0", "train-1", "train-2"],
         "fix": "fix this cause (details: railhead-perf --preflight in these pods)"},
        {"reason": "RailProfileOutdated", "severity": "Info", "pods": 1, "examples": ["train-7"],
         "fix": "recreate the pod to apply the current version"}]})json"));
}

TEST(RailReportTest, WhatMayPassIsAnInfo) {
  PodFinding finding = NotUsed(0);
  MarkTransient("soon", finding);
  EXPECT_EQ(ReportOf(kJob, FactsOf(1), {finding}).status["severity"], "Info");
}

TEST(RailReportTest, OfAJobThatIsWellNothingIsKnown) {
  const RailReport report = ReportOf(kJob, FactsOf(2), {});
  EXPECT_TRUE(report.is_clear);
  EXPECT_EQ(report.status["severity"], "None");
  EXPECT_EQ(report.status["reasons"], Json::array());
}

TEST(RailReportTest, WhoMayHaveToldAnotherReplicaIsNotKnown) {
  verdict::JobFacts facts = FactsOf(2);
  facts.pods[1].from_start = false;
  EXPECT_FALSE(ReportOf(kJob, facts, {}).is_certain);
  facts.pods[1].heard = true;
  EXPECT_TRUE(ReportOf(kJob, facts, {}).is_certain);
}

TEST(RailReportTest, OfAGangItsPodsAreTheOwners) {
  const RailReport report =
      ReportOf({"team", "PodGroup", "g", "", "", true, true}, FactsOf(40), {NotUsed(0)});
  EXPECT_EQ(report.name, "podgroup-g");
  ASSERT_EQ(report.owners.size(), 16U);
  EXPECT_EQ(report.owners[3], Json::parse(R"({"apiVersion": "v1", "kind": "Pod",
                                              "name": "train-3", "uid": "uid-3"})"));
}

TEST(RailReportTest, OfSeveralJobsTheseAreTheOwners) {
  verdict::JobFacts facts;
  for (int i = 0; i < 4; ++i) {
    auto pod = std::make_shared<verdict::PodFacts>();
    pod->name = absl::StrCat("js-w-", i);
    pod->uid = absl::StrCat("uid-", i);
    verdict::PodTerms terms;
    terms.owner = {"batch/v1", "Job", absl::StrCat("js-w-", i / 2),
                   absl::StrCat("uid-job-", i / 2)};
    pod->terms = std::move(terms);
    facts.pods.emplace_back().pod = pod;
  }
  const RailReport report =
      ReportOf({"team", "Job", "js-w", "uid-set", "", true, true}, facts, {NotUsed(0)});
  EXPECT_EQ(report.name, "job-js-w");
  EXPECT_EQ(report.owners, Json::parse(R"([
      {"apiVersion": "batch/v1", "kind": "Job", "name": "js-w-0", "uid": "uid-job-0"},
      {"apiVersion": "batch/v1", "kind": "Job", "name": "js-w-1", "uid": "uid-job-1"}])"));
}

TEST(RailReportTest, TheKeyOfAReportIsThatOfItsPodsJob) {
  verdict::PodFacts pod;
  pod.space = "team";
  pod.name = "p";
  EXPECT_EQ(ReportKeyOf(pod), "team/pod-p");
  verdict::PodTerms terms;
  terms.owner = {"apps/v1", "StatefulSet", "serve", "u"};
  pod.terms = std::move(terms);
  EXPECT_EQ(ReportKeyOf(pod), "team/statefulset-serve");
}

// The API server refuses other names, and would do so for ever.
TEST(RailReportTest, TheNameOfAReportIsADnsNameWhateverTheGangIsCalled) {
  std::set<std::string> names;
  for (const char* gang :
       {"Llama_70B", "llama-70b", "Llama-70b", "a..b", "a-.b", "a.", "-", "a.b"}) {
    const RailReport report =
        ReportOf({"team", "PodGroup", gang, "", "", true, true}, FactsOf(1), {NotUsed(0)});
    EXPECT_THAT(report.name,
                ::testing::MatchesRegex(
                    "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"));
    EXPECT_TRUE(names.insert(report.name).second) << report.name;
  }
  EXPECT_TRUE(names.contains("podgroup-llama-70b"));
  EXPECT_TRUE(names.contains("podgroup-a.b"));
}

TEST(RailReportTest, APodThatIsJudgedAloneHasItsOwn) {
  const RailReport report =
      ReportOf({"team", "DaemonSet", "train", "uid-0", "apps/v1"}, FactsOf(1), {NotUsed(0)});
  EXPECT_EQ(report.name, "pod-train-0");
  EXPECT_EQ(report.owners, Json::parse(R"([{"apiVersion": "v1", "kind": "Pod",
                                            "name": "train-0", "uid": "uid-0"}])"));
}

TEST(RailReportTest, LongNamesStayDifferentOnes) {
  JobName a = kJob;
  a.name = std::string(240, 'a') + "1";
  JobName b = a;
  b.name.back() = '2';
  const std::string of_a = ReportOf(a, FactsOf(1), {}).name;
  EXPECT_LE(of_a.size(), 253U);
  EXPECT_NE(of_a, ReportOf(b, FactsOf(1), {}).name);
  EXPECT_EQ(of_a, ReportOf(a, FactsOf(1), {}).name);
}

TEST(RailReportTest, ASummaryOfEverythingIsOneShortLine) {
  std::vector<PodFinding> findings;
  for (const verdict::ReasonRow& row : verdict::Reasons()) {
    findings.push_back(MakeFinding(row.reason, "train-0", "", {}));
  }
  const RailReport report = ReportOf(kJob, FactsOf(1), findings);
  EXPECT_EQ(report.status["reasons"].size(), verdict::Reasons().size());
  EXPECT_EQ(report.status["summary"].get<std::string>().size(), 256U);
}

TEST(MergeTest, WhatNoPageTellsIsKnownToBeOver) {
  const PodFinding unknown = MakeFinding(Reason::kResourceUnknown, "train-0", "", {"rdma/hcas"});
  const Json before = ReportOf(kJob, FactsOf(4), {NotUsed(0), unknown, Outdated(1)}).status;
  EXPECT_EQ(Merge(before, ReportOf(kJob, FactsOf(4), {}).status),
            ReportOf(kJob, FactsOf(4), {NotUsed(0)}).status);
}

TEST(MergeTest, WhatNobodySawGoIsStillThere) {
  const Json before = ReportOf(kJob, FactsOf(4), {NotUsed(0), Outdated(1)}).status;
  const Json merged = Merge(before, ReportOf(kJob, FactsOf(5), {Outdated(1), Outdated(2)}).status);
  EXPECT_EQ(merged, ReportOf(kJob, FactsOf(5), {NotUsed(0), Outdated(1), Outdated(2)}).status);
  EXPECT_EQ(Merge(merged, merged), merged);
  EXPECT_EQ(Merge(Json(), before), before);
  EXPECT_EQ(Merge(Json::parse(R"({"reasons": [7, {"reason": 7}, {"reason": "A"},
      {"reason": "A", "pods": 1}, {"reason": "A", "pods": "1", "severity": "Info"}]})"),
                  before),
            before);
}

}  // namespace
}  // namespace railhead::op
