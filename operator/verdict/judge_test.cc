// SPDX-License-Identifier: Apache-2.0
//
// Jobs that are set up wrongly, each of which must be told with its reason and nothing else; and
// jobs that are fine, of which nothing may be told.
#include "operator/verdict/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/verdict/runtime_page.h"
#include "operator/verdict/testing/cases.h"
#include "operator/verdict/testing/page.h"
#include "operator/verdict/testing/scene.h"

namespace railhead::op::verdict {
namespace {

using kube::Json;
using testing::BadCases;
using testing::Case;
using testing::Expected;
using testing::GoodCases;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Scene;

class BadCaseTest : public ::testing::TestWithParam<Case> {};

TEST_P(BadCaseTest, IsToldWithItsReasonAndNothingElse) {
  Scene scene;
  GetParam().spoil(scene);
  const std::vector<Finding> findings = scene.Judge();
  std::multiset<std::pair<std::string, std::string>> told;
  for (const Finding& finding : findings) {
    told.emplace(finding.pod, RowOf(finding.reason).name);
    EXPECT_LE(finding.message.size(), 1024U);
    EXPECT_EQ(finding.message.find_first_of("\n\r$"), std::string::npos) << finding.message;
    EXPECT_THAT(finding.message, HasSubstr(absl::StrCat("pod ", finding.pod)));
  }
  std::multiset<std::pair<std::string, std::string>> wanted;
  for (const Expected& expected : GetParam().expected) {
    wanted.emplace(expected.pod, expected.reason);
    for (const Finding& finding : findings) {
      if (finding.pod != expected.pod || RowOf(finding.reason).name != expected.reason) continue;
      for (const std::string& part : expected.says) EXPECT_THAT(finding.message, HasSubstr(part));
    }
  }
  EXPECT_EQ(told, wanted);
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
  for (const Case& bad : BadCases()) {
    Scene scene;
    bad.spoil(scene);
    for (const Finding& finding : scene.Judge()) told.insert(finding.reason);
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

TEST_P(GoodCaseTest, IsNotTold) {
  Scene scene;
  GetParam().spoil(scene);
  std::vector<std::string> messages;
  for (const Finding& finding : scene.Judge()) messages.push_back(finding.message);
  EXPECT_THAT(messages, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Matrix, GoodCaseTest, ::testing::ValuesIn(GoodCases()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(JudgeTest, WhatAUserWroteIsOneLineThatLeavesRoomForTheFix) {
  Scene scene;
  scene.UserSets(0, "NCCL_IB_HCA", "a\nb$1" + std::string(5000, 'x'));
  const std::vector<Finding> findings = scene.Judge();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].message, HasSubstr("NCCL_IB_HCA=a b$1xxx"));
  EXPECT_THAT(findings[0].message, HasSubstr("x..., which is none"));
  EXPECT_THAT(findings[0].message, HasSubstr("remove the variable"));
  EXPECT_LE(findings[0].message.size(), 1024U);
}

TEST(JudgeTest, NothingAtAllIsFine) { EXPECT_THAT(Judge({}, {}, absl::UnixEpoch()), IsEmpty()); }

}  // namespace
}  // namespace railhead::op::verdict
