// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/runtime_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace railhead::op::verdict {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPage[] =
    R"page(# HELP railhead_runtime_info Always 1.
# TYPE railhead_runtime_info gauge
railhead_runtime_info{job="train",rank="3",world_size="16",transport="verbs",requested="auto",fallback="warn",trouble=""} 1
railhead_rail_info{job="train",rank="3",rail="1",device="mlx5_1",port="1",transport="verbs",link_layer="InfiniBand",rate="",mtu="0",cause="port",trouble="port 1 is \"DOWN\""} 1
railhead_rail_info{job="train",rank="3",rail="0",device="mlx5_0",port="1",transport="verbs",link_layer="InfiniBand",rate="400 Gb/sec (4X NDR)",mtu="4096",cause="",trouble=""} 1
railhead_memlock_limit_bytes{job="train",rank="3"} +Inf
railhead_memlock_wanted_bytes{job="train",rank="3"} 75497472
railhead_memlock_least_bytes{job="train",rank="3"} 1.5e+07
railhead_shared_memory_bytes{job="train",rank="3"} 67108864
railhead_rail_transmit_bytes_total{job="train",rank="3",rail="0",device="mlx5_0",port="1",transport="verbs"} 12
railhead_rail_state{job="train",rank="3",rail="0",device="mlx5_0",port="1",transport="verbs"} 1 1700000000000
railhead_rail_state{job="train",rank="2",rail="0",device="mlx5_0",port="1",transport="verbs"} 0
railhead_collective_duration_seconds_bucket{job="train",rank="3",le="0.1"} nonsense
railhead_degraded{job="train",rank="3",reason="RDMA on 1 of 2 rails: rank 3"} 1
railhead_degraded{job="train",rank="2",reason=""} 0
)page";

TEST(RuntimePageTest, IsReadByRank) {
  const absl::StatusOr<RuntimeReport> report = ParseRuntimePage(kPage);
  ASSERT_TRUE(report.ok()) << report.status();
  RankReport second;
  second.job = "train";
  second.rank = 2;
  second.used = {{0, "mlx5_0", "verbs", false}};
  RankReport third;
  third.job = "train";
  third.rank = 3;
  third.start = {16, "verbs", "auto", "warn", ""};
  third.degraded = "RDMA on 1 of 2 rails: rank 3";
  third.given = {
      {0, "mlx5_0", "InfiniBand", "400 Gb/sec (4X NDR)", 4096, "", ""},
      {1, "mlx5_1", "InfiniBand", "", 0, "port 1 is \"DOWN\"", "port"},
  };
  third.used = {{0, "mlx5_0", "verbs", true}};
  third.memlock_limit = std::numeric_limits<double>::infinity();
  third.memlock_wanted = 75497472;
  third.memlock_least = 15000000;
  third.shared_memory = 67108864;
  EXPECT_THAT(report->ranks, ElementsAre(second, third));
}

TEST(RuntimePageTest, APageWithoutOurSeriesIsAnEmptyReport) {
  for (const char* page : {"", "\n\n", "# nothing\n", "up 1\n{ broken\n<html>\n"}) {
    const absl::StatusOr<RuntimeReport> report = ParseRuntimePage(page);
    ASSERT_TRUE(report.ok()) << page;
    EXPECT_TRUE(report->ranks.empty()) << page;
  }
}

TEST(RuntimePageTest, AnOldRuntimeSaysLessAndANewerOneMore) {
  const absl::StatusOr<RuntimeReport> report = ParseRuntimePage(
      "railhead_degraded{job=\"j\",rank=\"0\",reason=\"\",new=\"x\"} 0\r\n"
      "railhead_runtime_info{job=\"j\",rank=\"1\",world_size=\"2\",transport=\"pigeon\"} 1\n");
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->ranks.size(), 2U);
  EXPECT_FALSE(report->ranks[0].start.has_value());
  EXPECT_EQ(report->ranks[1].start->transport, "pigeon");
}

TEST(RuntimePageTest, ThereIsACauseWhereThereIsATrouble) {
  const absl::StatusOr<RuntimeReport> report = ParseRuntimePage(
      "railhead_rail_info{rank=\"0\",rail=\"0\",mtu=\"0\",cause=\"port\"} 1\n"
      "railhead_rail_info{rank=\"0\",rail=\"1\",mtu=\"0\",trouble=\"no\"} 1\n"
      "railhead_rail_info{rank=\"0\",rail=\"2\",mtu=\"0\",cause=\"new\",trouble=\"no\"} 1\n");
  ASSERT_TRUE(report.ok()) << report.status();
  const std::vector<GivenRail>& given = report->ranks[0].given;
  EXPECT_EQ(given[0].cause, "");
  EXPECT_EQ(given[1].cause, "other");
  EXPECT_EQ(given[2].cause, "new");
}

TEST(RuntimePageTest, TextsAreOneLineOfUtf8ThatIsNotTooLong) {
  const std::string page = absl::StrCat(R"(railhead_degraded{job="a\nb",rank="0",reason="x)",
                                        "\x1b[31m\xff", std::string(5000, 'y'), "\"} 1\n");
  const absl::StatusOr<RuntimeReport> report = ParseRuntimePage(page);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->ranks[0].job, "a b");
  const std::string& reason = report->ranks[0].degraded;
  EXPECT_TRUE(absl::StartsWith(reason, "x [31m\xef\xbf\xbdyyy")) << reason;
  EXPECT_LE(reason.size(), 520U);
}

struct Broken {
  const char* line;
  const char* why;
};

TEST(RuntimePageTest, WhatIsBrokenIsRefusedWithLineAndCause) {
  const Broken cases[] = {
      {"railhead_degraded", "its value is no number"},
      {"railhead_degraded{", "a label has no name"},
      {"railhead_degraded{rank", "label rank has no quoted value"},
      {"railhead_degraded{rank=0} 1", "label rank has no quoted value"},
      {"railhead_degraded{rank=\"0", "label rank has no quoted value"},
      {"railhead_degraded{rank=\"0\\", "label rank has no quoted value"},
      {"railhead_degraded{rank=\"\\0\"} 1", "label rank has no quoted value"},
      {"railhead_degraded{rank=\"0\"", "nothing closes the labels after rank"},
      {"railhead_degraded{rank=\"0\" job=\"a\"} 1", "nothing closes the labels after rank"},
      {"railhead_degraded{rank=\"0\",rank=\"0\"} 1", "label rank is there twice"},
      {"railhead_degraded{0=\"0\"} 1", "a label has no name"},
      {"railhead_degraded{rank=\"0\"} one", "its value is no number"},
      {"railhead_degraded{rank=\"0\"} 1 now", "is no time"},
      {"railhead_degraded{rank=\"0\"} 2", "neither 0 nor 1"},
      {"railhead_degraded{rank=\"0\"} NaN", "neither 0 nor 1"},
      {"railhead_degraded{job=\"a\"} 1", "label rank is no number from 0 to 1000000"},
      {"railhead_degraded{rank=\"-1\"} 1", "label rank is no number"},
      {"railhead_degraded{rank=\"1000001\"} 1", "label rank is no number"},
      {"railhead_rail_state{rank=\"0\",rail=\"9999\"} 1", "label rail is no number from 0 to 1023"},
      {"railhead_rail_state{rank=\"0\",rail=\"0\"} 0.5", "neither 0 nor 1"},
      {"railhead_rail_info{rank=\"0\",rail=\"0\",mtu=\"big\"} 1", "label mtu is no number"},
      {"railhead_runtime_info{rank=\"0\"} 1", "label world_size is no number"},
      {"railhead_memlock_limit_bytes{rank=\"0\"} -1", "no number of bytes"},
      {"railhead_memlock_limit_bytes{rank=\"0\"} NaN", "no number of bytes"},
      {"railhead_memlock_least_bytes{job=\"train\",rank=\"3\"} 1", "it is there twice"},
      {"railhead_rail_state{job=\"train\",rank=\"2\",rail=\"0\",device=\"mlx5_0\","
       "transport=\"verbs\"} 0",
       "it is there twice"},
      {"railhead_rail_info{job=\"train\",rank=\"3\",rail=\"1\",mtu=\"0\"} 1", "it is there twice"},
      {"railhead_runtime_info{job=\"train\",rank=\"3\",world_size=\"16\"} 1", "it is there twice"},
      {"railhead_degraded{job=\"train\",rank=\"3\",reason=\"\"} 0", "it is there twice"},
  };
  for (const Broken& broken : cases) {
    const absl::StatusOr<RuntimeReport> report =
        ParseRuntimePage(absl::StrCat(kPage, broken.line, "\n"));
    ASSERT_FALSE(report.ok()) << broken.line;
    EXPECT_THAT(std::string(report.status().message()),
                AllOf(HasSubstr("line 16 of the page, railhead_"), HasSubstr(broken.why)))
        << broken.line;
  }
}

TEST(RuntimePageTest, WhatIsTooLargeIsRefused) {
  const auto why = [](const std::string& page) {
    return std::string(ParseRuntimePage(page).status().message());
  };
  EXPECT_EQ(why(std::string(kMaxLineBytes, 'a')), "");
  EXPECT_THAT(why(std::string(kMaxLineBytes + 1, 'a')), HasSubstr("is longer than 65536 bytes"));
  EXPECT_THAT(why(std::string(kMaxPageBytes + 1, '\n')), HasSubstr("more than 2097152"));
  std::string page;
  for (size_t i = 0; i < kMaxSeries; ++i) {
    absl::StrAppend(&page, "railhead_degraded{rank=\"", i, "\"} 0\n");
  }
  EXPECT_EQ(why(page), "");
  EXPECT_THAT(why(page + "railhead_degraded{rank=\"5000\"} 0\n"), HasSubstr("more than 4096"));
  std::string labels;
  for (int i = 0; i < 33; ++i) absl::StrAppend(&labels, "l", i, "=\"\",");
  EXPECT_THAT(why(absl::StrCat("railhead_degraded{", labels, "} 0\n")), HasSubstr("more than 32"));
}

}  // namespace
}  // namespace railhead::op::verdict
