// SPDX-License-Identifier: Apache-2.0
//
// Jobs that are set up wrongly, each of which must be told with its reason and nothing else; and
// jobs that are fine, of which nothing may be told.
#include "operator/verdict/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/finding_checks.h"
#include "operator/verdict/runtime_page.h"
#include "operator/verdict/testing/cases.h"
#include "operator/verdict/testing/page.h"
#include "operator/verdict/testing/scene.h"
#include "operator/verdict/testing/spoil.h"

namespace railhead::op::verdict {
namespace {

using kube::Json;
using testing::BadCases;
using testing::Case;
using ::testing::ElementsAre;
using testing::Expected;
using testing::GoodCases;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Scene;

// That these and no others are told, all of this severity.
void ExpectTold(const std::vector<Expected>& all, Severity severity,
                const std::vector<PodFinding>& findings) {
  std::multiset<std::pair<std::string, std::string>> told;
  for (const PodFinding& finding : findings) {
    EXPECT_EQ(finding.severity, severity) << FindingLine(finding);
    EXPECT_THAT(FindingLine(finding), HasSubstr(absl::StrCat("; ", finding.fix)));
    told.emplace(finding.pod, finding.check);
    ExpectWhole(finding);
    EXPECT_LE(FindingLine(finding).size(), 1024U);
    EXPECT_EQ(FindingLine(finding).find_first_of("\n\r$"), std::string::npos)
        << FindingLine(finding);
    EXPECT_THAT(FindingLine(finding), HasSubstr(absl::StrCat("pod ", finding.pod)));
  }
  std::multiset<std::pair<std::string, std::string>> wanted;
  for (const Expected& expected : all) {
    wanted.emplace(expected.pod, expected.reason);
    for (const PodFinding& finding : findings) {
      if (finding.pod != expected.pod || finding.check != expected.reason) continue;
      for (const std::string& part : expected.says)
        EXPECT_THAT(FindingLine(finding), HasSubstr(part));
    }
  }
  EXPECT_EQ(told, wanted);
}

class BadCaseTest : public ::testing::TestWithParam<Case> {};

TEST_P(BadCaseTest, IsToldWithItsReasonAndNothingElse) {
  Scene scene;
  GetParam().spoil(scene);
  ExpectTold(GetParam().expected, Severity::kFail, scene.Judge());
}

TEST_P(BadCaseTest, IsNoWarningWhileItMayPass) {
  Scene scene;
  GetParam().spoil(scene);
  scene.waiting = absl::ZeroDuration();
  if (GetParam().first.empty()) {
    EXPECT_EQ(scene.Judge(), [] {
      Scene again;
      GetParam().spoil(again);
      return again.Judge();
    }());
    return;
  }
  ExpectTold(GetParam().first, Severity::kWarn, scene.Judge());
}

TEST_P(BadCaseTest, IsNotToldOfPodsThatHaveFinished) {
  Scene scene;
  GetParam().spoil(scene);
  for (Json& pod : scene.pods) pod["status"]["phase"] = "Succeeded";
  EXPECT_THAT(scene.Judge(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Matrix, BadCaseTest, ::testing::ValuesIn(BadCases()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ReasonsTest, EachOfTheTableIsToldInSomeCase) {
  std::set<Reason> told;
  for (const std::vector<Case>* cases : {&BadCases(), &GoodCases()}) {
    for (const Case& one : *cases) {
      Scene scene;
      one.spoil(scene);
      for (const PodFinding& finding : scene.Judge()) {
        told.insert(finding.reason);
        ExpectWhole(finding);
      }
    }
  }
  std::set<std::string> names;
  for (const ReasonRow& row : Reasons()) {
    EXPECT_EQ(told.count(row.reason), 1U) << row.name;
    EXPECT_TRUE(names.emplace(row.name).second) << row.name;
    EXPECT_THAT(std::string(row.name), ::testing::MatchesRegex("([A-Z][a-z]+)+"));
  }
}

// So that what is shown with pages elsewhere is shown of these cases.
TEST(PageTest, SaysWhatEachCaseReports) {
  for (const std::vector<Case>* cases : {&BadCases(), &GoodCases()}) {
    for (const Case& one : *cases) {
      Scene scene;
      one.spoil(scene);
      for (const RuntimeReport& report : scene.reports) {
        const absl::StatusOr<RuntimeReport> read = ParseRuntimePage(testing::PageOf(report));
        ASSERT_TRUE(read.ok()) << one.name << ": " << read.status();
        EXPECT_EQ(*read, report) << one.name;
      }
    }
  }
}

class GoodCaseTest : public ::testing::TestWithParam<Case> {};

TEST_P(GoodCaseTest, IsNotWarnedOf) {
  Scene scene;
  GetParam().spoil(scene);
  ExpectTold(GetParam().first, Severity::kWarn, scene.Judge());
}

std::vector<std::string> WarningsOf(const Scene& scene) {
  std::vector<std::string> messages;
  for (const PodFinding& finding : scene.Judge()) {
    if (finding.severity == Severity::kFail) messages.push_back(FindingLine(finding));
  }
  return messages;
}

// What may happen to any of them, and makes none of them wrong.

TEST_P(GoodCaseTest, IsNotWarnedOfWhenItsRuntimesEnd) {
  Scene scene;
  GetParam().spoil(scene);
  scene.RuntimesEnd();
  EXPECT_THAT(WarningsOf(scene), IsEmpty());
  // One after the other.
  for (size_t pod = 0; pod < scene.reports.size(); ++pod) {
    Scene other;
    GetParam().spoil(other);
    if (!other.reporting[pod]) continue;
    other.reporting[pod] = false;
    other.silence[pod] = absl::Hours(1);
    other.ended[pod] = other.reports[pod];
    EXPECT_THAT(WarningsOf(other), IsEmpty()) << pod;
  }
}

TEST_P(GoodCaseTest, IsNotWarnedOfWhenTheLeaderChanges) {
  Scene scene;
  GetParam().spoil(scene);
  scene.from_start = false;  // who leads now, and hears the same
  EXPECT_THAT(WarningsOf(scene), IsEmpty());
  // Some have ended before, and nobody remembers.
  for (size_t pod = 0; pod < scene.reports.size(); ++pod) {
    scene.reporting[pod] = false;
    scene.silence[pod] = absl::Hours(1);
    EXPECT_THAT(WarningsOf(scene), IsEmpty()) << pod;
  }
}

// Those that are what they are at any time.
class TimelessCaseTest : public GoodCaseTest {
 public:
  static std::vector<Case> All() {
    std::vector<Case> cases = GoodCases();
    cases.erase(
        std::remove_if(cases.begin(), cases.end(), [](auto& one) { return one.takes_time; }),
        cases.end());
    return cases;
  }
};

TEST_P(TimelessCaseTest, IsNotWarnedOfLaterOrSooner) {
  Scene scene;
  GetParam().spoil(scene);
  const absl::Duration waiting = scene.waiting;
  for (const absl::Duration later : {absl::ZeroDuration(), absl::Seconds(61), absl::Hours(100)}) {
    scene.unchanged.assign(4, later);
    scene.waiting = std::min(waiting, later);
    EXPECT_THAT(WarningsOf(scene), IsEmpty()) << later;
  }
}

INSTANTIATE_TEST_SUITE_P(Matrix, GoodCaseTest, ::testing::ValuesIn(GoodCases()),
                         [](const auto& one) { return std::string(one.param.name); });
INSTANTIATE_TEST_SUITE_P(Matrix, TimelessCaseTest, ::testing::ValuesIn(TimelessCaseTest::All()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(JudgeTest, WhatAUserWroteIsOneLineThatLeavesRoomForTheFix) {
  Scene scene;
  scene.UserSets(0, "NCCL_IB_HCA", "a\nb$1" + std::string(3000, 'x'));
  const std::vector<PodFinding> findings = scene.Judge();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(FindingLine(findings[0]), HasSubstr("NCCL_IB_HCA=a\\nb$1xxx"));
  EXPECT_THAT(FindingLine(findings[0]), HasSubstr("x..., which matches none"));
  EXPECT_THAT(FindingLine(findings[0]), HasSubstr("remove the variable"));
  EXPECT_LE(FindingLine(findings[0]).size(), 1024U);
}

// What a page may still take back is said once no page comes, and what none could is said at once.
TEST(JudgeTest, OnlyWhatAReportCouldTakeBackWaitsForIt) {
  Scene scene;
  scene.WithoutReports();
  scene.Container(0).erase("volumeMounts");
  scene.pods[1]["spec"]["volumes"][0]["emptyDir"]["sizeLimit"] = "32Mi";
  scene.pods[2]["metadata"]["annotations"].erase("prometheus.io/scrape");  // it has no page
  scene.Container(2).erase("volumeMounts");
  const auto pods = [&scene] {
    std::set<std::string> told;
    for (const PodFinding& finding : scene.Judge()) told.insert(finding.pod);
    return told;
  };
  scene.silence.assign(4, absl::Seconds(59));
  EXPECT_THAT(pods(), ElementsAre("train-1", "train-2"));
  scene.silence.assign(4, kSilence);
  EXPECT_THAT(pods(), ElementsAre("train-0", "train-1", "train-2"));
}

TEST(JudgeTest, ARailIsNotBlamedOnReportsThatAreOlderThanItsLoss) {
  Scene scene;
  testing::LoseRail(scene, 2, 6, {1, 3});
  JobFacts job = scene.Job();
  EXPECT_EQ(Judge(job, scene.MakeCluster()).size(), 1U);
  job.pods[0].unchanged = job.pods[0].age = absl::Hours(2);  // it has not been asked since
  EXPECT_THAT(Judge(job, scene.MakeCluster()), IsEmpty());
}

TEST(JudgeTest, FindingsNameRailAndNode) {
  Scene scene;
  testing::LoseRail(scene, 2, 6, {1, 3});
  testing::SetRail(scene, 2, 6, false, "port 1 is DOWN");
  testing::BreakRail(scene, 1, 3, "port 1 is DOWN", "port");
  const std::vector<PodFinding> findings = scene.Judge();
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].place, (RailPlace{3, "n1"}));
  EXPECT_EQ(findings[0].part, "rail 3");
  EXPECT_EQ(findings[1].place, (RailPlace{6, "n2"}));
}

TEST(JudgeTest, OfAReasonAndAPartThereIsOneFindingAndWarningsComeFirst) {
  Scene scene;
  scene.profiles["h100"].generation = 3;  // an info for each pod
  scene.UserSets(3, "NCCL_SOCKET_IFNAME", "=eno1");
  scene.UserSets(3, "GLOO_SOCKET_IFNAME", "eno2");
  const std::vector<PodFinding> findings = scene.Judge();
  ASSERT_EQ(findings.size(), 5U);
  EXPECT_EQ(findings[0].reason, Reason::kSocketInterfaceUnknown);
  EXPECT_EQ(findings[0].pod, "train-3");
  EXPECT_EQ(findings[0].part, "trainer");
  for (size_t i = 1; i < 5; ++i) EXPECT_EQ(findings[i].reason, Reason::kProfileOutdated);
}

TEST(JudgeTest, APodThatHasHeardOfNobodyIsNoSilentOneAfterItHasReported) {
  Scene scene;
  scene.reporting[3] = false;
  scene.silence[3] = absl::Hours(1);
  EXPECT_THAT(WarningsOf(scene), ElementsAre(HasSubstr("serves no metrics on port 9402")));
  scene.ended[3] = scene.reports[3];
  EXPECT_THAT(WarningsOf(scene), IsEmpty());
}

// What the report had refuted is alleged where it never came.
TEST(JudgeTest, WhatAReportHasRefutedStaysSo) {
  Scene scene;
  scene.pods[1]["spec"]["securityContext"] = {{"runAsUser", 1000}};
  testing::Rank(scene, 1).memlock_limit = 1 << 30;
  scene.Container(1).erase("volumeMounts");
  scene.UserSets(1, "NCCL_IB_DISABLE", "1");
  scene.nodes[1]["metadata"]["labels"]["railhead.io/link-layer"] = "Ethernet";
  testing::SetRail(scene, 1, 6, false, "port 1 is DOWN");
  EXPECT_THAT(WarningsOf(scene), IsEmpty());
  scene.RuntimesEnd();
  EXPECT_THAT(WarningsOf(scene), IsEmpty());
  scene.ended.assign(4, std::nullopt);
  EXPECT_EQ(WarningsOf(scene).size(), 5U);
}

TEST(JudgeTest, WhereOnlyReportsTieThePodsTheyAreComparedByThem) {
  Scene scene;
  testing::MakeStatefulSet(scene);
  testing::All(scene, [&](int pod) { scene.WeSet(pod, "NCCL_IB_TC", pod == 1 ? "0" : "106"); });
  EXPECT_THAT(WarningsOf(scene), ElementsAre(HasSubstr("NCCL_IB_TC=0")));
  for (RuntimeReport& report : scene.reports) {
    report.ranks[0].job = report.ranks[0].start->pod;
  }
  EXPECT_THAT(WarningsOf(scene), IsEmpty());
}

TEST(JudgeTest, AJobOfManyPodsIsJudgedWithoutGoingThroughAllNodesForEach) {
  // The cluster offers look-ups alone, so this is as fast as it looks (verdict_bench.cc).
  Cluster::Nodes nodes;
  for (int i = 0; i < 5000; ++i) {
    NodeFacts facts;
    facts.capacity["rdma/hca"] = 8;
    facts.allocatable["rdma/hca"] = i == 4000 ? 7 : 4;
    nodes[absl::StrCat("n", i)] = std::make_shared<const NodeFacts>(facts);
  }
  const Cluster cluster(std::move(nodes), {});
  Scene scene;
  scene.Unschedulable(3, testing::kNoRoom);
  const std::shared_ptr<const PodFacts> waiting = scene.Job().pods[3].pod;
  JobFacts job;
  for (int i = 0; i < 2048; ++i) {
    PodFacts pod = *waiting;
    pod.name = absl::StrCat("train-", i);
    job.pods.emplace_back().pod = std::make_shared<const PodFacts>(pod);
  }
  const std::vector<PodFinding> findings = Judge(job, cluster);
  ASSERT_EQ(findings.size(), 2048U);
  EXPECT_EQ(findings[0].reason, Reason::kRailsDownAtNodes);
  EXPECT_THAT(FindingLine(findings[0]), HasSubstr("node n0 has 4 of 8 usable"));
}

TEST(JudgeTest, NothingAtAllIsFine) { EXPECT_THAT(Judge({}, {}), IsEmpty()); }

}  // namespace
}  // namespace railhead::op::verdict
