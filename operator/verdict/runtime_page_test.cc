// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/runtime_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fabric/rail_limit.h"
#include "operator/verdict/page_identity.h"
#include "operator/verdict/page_lines.h"

namespace railhead::op::verdict {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPage[] =
    R"page(# HELP railhead_runtime_info Always 1.
# TYPE railhead_runtime_info gauge
railhead_runtime_info{job="train",rank="3",world_size="16",transport="verbs",requested="auto",fallback="warn",trouble="",pod="train-3",unauthenticated="no key"} 1
railhead_rail_info{job="train",rank="3",rail="1",device="mlx5_1",port="1",transport="verbs",link_layer="InfiniBand",rate="",mtu="0",cause="port",trouble="port 1 is \"DOWN\""} 1
railhead_rail_info{job="train",rank="3",rail="0",device="mlx5_0",port="1",transport="verbs",link_layer="InfiniBand",rate="400 Gb/sec (4X NDR)",mtu="4096",cause="",trouble=""} 1
railhead_memlock_limit_bytes{job="train",rank="3"} +Inf
railhead_memlock_wanted_bytes{job="train",rank="3"} 75497472
railhead_memlock_least_bytes{job="train",rank="3"} 1.5e+07
railhead_shared_memory_bytes{job="train",rank="3"} 67108864
railhead_rail_transmit_bytes_total{job="train",rank="3",rail="0",device="mlx5_0",port="1",transport="verbs"} 12
railhead_rail_state{job="train",rank="3",rail="0",device="mlx5_0",port="1",transport="verbs"} 1 1700000000000
railhead_rail_lost_peers{job="train",rank="2",rail="0",device="mlx5_0",port="1",transport="verbs"} 1
railhead_rail_state{job="train",rank="2",rail="0",device="mlx5_0",port="1",transport="verbs"} 0
railhead_rail_peers{job="train",rank="2",rail="0",device="mlx5_0",port="1",transport="verbs"} 2
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
  second.used = {UsedRail{0, "mlx5_0", "verbs", false, 2, 1}};
  RankReport third;
  third.job = "train";
  third.rank = 3;
  third.start = {16, "verbs", "auto", "warn", "", "train-3", "no key"};
  third.degraded = "RDMA on 1 of 2 rails: rank 3";
  third.given = {
      GivenRail{0, "mlx5_0", "InfiniBand", "400 Gb/sec (4X NDR)", 4096, "", ""},
      GivenRail{1, "mlx5_1", "InfiniBand", "", 0, "port 1 is \"DOWN\"", "port"},
  };
  third.used = {UsedRail{0, "mlx5_0", "verbs", true, 0, 0}};
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
  const SharedList<GivenRail>& given = report->ranks[0].given;
  EXPECT_EQ(given[0].cause, "");
  EXPECT_EQ(given[1].cause, "other");
  EXPECT_EQ(given[2].cause, "new");
}

TEST(RuntimePageTest, TextsAreOneLineOfUtf8ThatIsNotTooLong) {
  const std::string page = absl::StrCat(R"(railhead_degraded{job="a\nb",rank="0",reason="x)",
                                        "\x1b[31m\xff", std::string(5000, 'y'), "\"} 1\n");
  const absl::StatusOr<RuntimeReport> report = ParseRuntimePage(page);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->ranks[0].job, "a\\nb");
  const std::string& reason = report->ranks[0].degraded;
  EXPECT_TRUE(absl::StartsWith(reason, "x\\x1b[31m\\xffyyy")) << reason;
  EXPECT_LE(reason.size(), 520U);
}

struct Broken {
  const char* line;
  const char* why;
};

TEST(RuntimePageTest, WhatIsBrokenIsRefusedWithLineAndCause) {
  const Broken cases[] = {
      {"railhead_degraded", "its value is not a number"},
      {"railhead_degraded{", "a label has no name"},
      {"railhead_degraded{rank", "label rank has no quoted value"},
      {"railhead_degraded{rank=0} 1", "label rank has no quoted value"},
      {"railhead_degraded{rank=\"0", "label rank has no quoted value"},
      {"railhead_degraded{rank=\"0\\", "label rank has no quoted value"},
      {"railhead_degraded{rank=\"\\0\"} 1", "label rank has no quoted value"},
      {"railhead_degraded{rank=\"0\"", "no closing brace of the labels after rank"},
      {"railhead_degraded{rank=\"0\" job=\"a\"} 1", "no closing brace of the labels after rank"},
      {"railhead_degraded{rank=\"0\",rank=\"0\"} 1", "label rank appears twice"},
      {"railhead_degraded{0=\"0\"} 1", "a label has no name"},
      {"railhead_degraded{rank=\"0\"} one", "its value is not a number"},
      {"railhead_degraded{rank=\"0\"} 1 now", "is not a timestamp"},
      {"railhead_degraded{rank=\"0\"} 2", "not 0 or 1"},
      {"railhead_degraded{rank=\"0\"} NaN", "not 0 or 1"},
      {"railhead_degraded{job=\"a\"} 1", "label rank is not a number from 0 to 1000000"},
      {"railhead_degraded{rank=\"-1\"} 1", "label rank is not a number"},
      {"railhead_degraded{rank=\"1000001\"} 1", "label rank is not a number"},
      {"railhead_rail_state{rank=\"0\",rail=\"9999\"} 1",
       "label rail is not a number from 0 to 63"},
      {"railhead_rail_state{rank=\"0\",rail=\"0\"} 0.5", "not 0 or 1"},
      {"railhead_rail_info{rank=\"0\",rail=\"0\",mtu=\"big\"} 1", "label mtu is not a number"},
      {"railhead_rail_peers{rank=\"0\",rail=\"0\"} -1", "not a number from 0 to 1000000"},
      {"railhead_rail_lost_peers{rank=\"0\",rail=\"0\"} NaN", "not a number from 0 to 1000000"},
      {"railhead_rail_lost_peers{rank=\"0\"} 1", "label rail is not a number"},
      {"railhead_runtime_info{rank=\"0\"} 1", "label world_size is not a number"},
      {"railhead_memlock_limit_bytes{rank=\"0\"} -1", "not a number of bytes"},
      {"railhead_memlock_limit_bytes{rank=\"0\"} NaN", "not a number of bytes"},
      {"railhead_memlock_least_bytes{job=\"train\",rank=\"3\"} 1", "it appears twice"},
      {"railhead_rail_state{job=\"train\",rank=\"2\",rail=\"0\",device=\"mlx5_0\","
       "transport=\"verbs\"} 0",
       "it appears twice"},
      {"railhead_rail_info{job=\"train\",rank=\"3\",rail=\"1\",mtu=\"0\"} 1", "it appears twice"},
      {"railhead_runtime_info{job=\"train\",rank=\"3\",world_size=\"16\"} 1", "it appears twice"},
      {"railhead_degraded{job=\"train\",rank=\"3\",reason=\"\"} 0", "it appears twice"},
  };
  for (const Broken& broken : cases) {
    const absl::StatusOr<RuntimeReport> report =
        ParseRuntimePage(absl::StrCat(kPage, broken.line, "\n"));
    ASSERT_FALSE(report.ok()) << broken.line;
    EXPECT_THAT(std::string(report.status().message()),
                AllOf(HasSubstr("line 18 of the page, railhead_"), HasSubstr(broken.why)))
        << broken.line;
  }
}

// Two jobs of one name in a pod, or a forked child: the runtime tells them apart by `process`.
TEST(RuntimePageTest, ProcessesThatAreTheSameRankAreAllRead) {
  const absl::StatusOr<RuntimeReport> report = ParseRuntimePage(
      "railhead_degraded{job=\"train\",rank=\"0\",process=\"17\",reason=\"\"} 0\n"
      "railhead_degraded{job=\"train\",rank=\"0\",process=\"18\",reason=\"over TCP\"} 1\n"
      "railhead_degraded{job=\"train\",rank=\"1\",reason=\"\"} 0\n");
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->ranks.size(), 3U);
  EXPECT_EQ(report->ranks[0].rank, 0);
  EXPECT_EQ(report->ranks[1].rank, 0);
  EXPECT_EQ(report->ranks[1].degraded, "over TCP");
  EXPECT_EQ(report->ranks[2].rank, 1);
}

// A process may have Railhead's own communicators and NCCL over the plugin.
TEST(RuntimePageTest, LibrariesOfOneProcessAreReadApart) {
  const absl::StatusOr<RuntimeReport> report = ParseRuntimePage(
      "railhead_degraded{job=\"train\",rank=\"0\",reason=\"\"} 0\n"
      "railhead_degraded{job=\"train\",rank=\"0\",source=\"nccl\",reason=\"over TCP\"} 1\n");
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->ranks.size(), 2U);
  EXPECT_EQ(report->ranks[0].degraded, "");
  EXPECT_EQ(report->ranks[1].degraded, "over TCP");
}

TEST(RuntimePageTest, WhatIsTooLargeIsRefused) {
  const auto why = [](const std::string& page) {
    return std::string(ParseRuntimePage(page).status().message());
  };
  EXPECT_EQ(why(std::string(kMaxLineBytes, 'a')), "");
  EXPECT_THAT(why(std::string(kMaxLineBytes + 1, 'a')), HasSubstr("is longer than 65536 bytes"));
  EXPECT_THAT(why(std::string(kMaxPageBytes + 1, '\n')), HasSubstr("more than 2097152"));
  std::string page;
  for (size_t i = 0; i < kMaxRanks; ++i) {
    absl::StrAppend(&page, "railhead_degraded{rank=\"", i, "\"} 0\n");
  }
  EXPECT_EQ(why(page), "");
  EXPECT_THAT(why(page + "railhead_degraded{rank=\"64\"} 0\n"), HasSubstr("more than 64 ranks"));
  for (const char* series : {"railhead_rail_state", "railhead_rail_info", "railhead_rail_peers"}) {
    const auto line = [series](size_t rail, const char* device) {
      return absl::StrCat(series, "{device=\"", device, "\",mtu=\"0\",rank=\"0\",rail=\"", rail,
                          "\"} 1\n");
    };
    std::string rails;
    for (size_t i = 0; i < fabric::kMaxRails; ++i) absl::StrAppend(&rails, line(i, "a"));
    EXPECT_EQ(why(rails), "");
    EXPECT_THAT(why(rails + line(fabric::kMaxRails, "a")), HasSubstr("not a number from 0 to 63"));
    const bool one_of_each_number = std::string(series) == "railhead_rail_info";
    EXPECT_THAT(why(rails + line(0, "b")),
                HasSubstr(one_of_each_number ? "twice" : "more than 64 rails"));
  }
  // What is not read may be long, and what is read may not.
  const auto lines = [](const char* name) {
    std::string text;
    for (int i = 0; i < 300; ++i) {
      absl::StrAppend(&text, name, "{rank=\"0\",reason=\"", std::string(100, 'x'), "\"} 0\n");
    }
    return text;
  };
  EXPECT_EQ(why(lines("railhead_collective_bytes_total") + lines("up") + lines("up")), "");
  const std::string longest = absl::StrCat("railhead_degraded{reason=\"", std::string(60000, 'x'));
  EXPECT_EQ(why(absl::StrCat(longest, "\",rank=\"0\"} 0\n")), "");
  EXPECT_THAT(why(absl::StrCat(longest, "\",rank=\"0\"} 0\n", longest, "\",rank=\"1\"} 0\n")),
              HasSubstr("more than 65536 bytes of series to store"));
  std::string labels;
  for (int i = 0; i < 33; ++i) absl::StrAppend(&labels, "l", i, "=\"\",");
  EXPECT_THAT(why(absl::StrCat("railhead_degraded{", labels, "} 0\n")), HasSubstr("more than 32"));
}

TEST(PageLinesTest, KeepWhatIsReadWhateverThePieces) {
  const RuntimeReport report = *ParseRuntimePage(kPage);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{100}, sizeof(kPage)}) {
    PageLines lines;
    for (size_t at = 0; at < sizeof(kPage) - 1; at += piece) {
      ASSERT_TRUE(lines.Append(absl::string_view(kPage).substr(at, piece)).ok());
    }
    const std::string kept = std::move(lines).Take();
    EXPECT_EQ(kept.find("transmit_bytes"), std::string::npos);
    EXPECT_EQ(*ParseRuntimePage(kept), report);
  }
}

TEST(PageLinesTest, RefuseWhatIsTooLargeAsSoonAsItIs) {
  PageLines page;
  const std::string other(1000, 'x');
  absl::Status taken;
  size_t bytes = 0;
  for (; taken.ok() && bytes < 10 * kMaxPageBytes; bytes += 1001) taken = page.Append(other + "\n");
  EXPECT_LE(bytes, kMaxPageBytes + 2 * 1001);
  EXPECT_THAT(std::string(taken.message()), HasSubstr("more than 2097152 bytes"));

  PageLines line;
  EXPECT_TRUE(line.Append(std::string(kMaxLineBytes, 'x')).ok());
  EXPECT_THAT(std::string(line.Append("x").message()), HasSubstr("longer than 65536 bytes"));

  PageLines kept;
  EXPECT_TRUE(kept.Append("railhead_degraded " + std::string(60000, 'x') + "\n").ok());
  EXPECT_THAT(
      std::string(kept.Append("railhead_degraded " + std::string(60000, 'x') + "\n").message()),
      HasSubstr("too many ranks, rails or long texts"));
}

TEST(PageIdentityTest, APageIsThatOfThePodWhichItNames) {
  RuntimeReport report = *ParseRuntimePage(kPage);
  PodFacts pod;
  pod.name = "train-3";
  pod.address = "10.0.0.3";
  pod.metrics_port = 9402;
  EXPECT_TRUE(CheckPageIsOf(report, pod).ok());
  pod.host_network = true;
  EXPECT_TRUE(CheckPageIsOf(report, pod).ok());
  pod.name = "train-4";
  EXPECT_EQ(CheckPageIsOf(report, pod).message(),
            "the metrics at 10.0.0.3:9402, scraped for pod train-4, are those of pod train-3");
  report.ranks[1].start->pod.clear();
  EXPECT_THAT(std::string(CheckPageIsOf(report, pod).message()), HasSubstr("name no pod"));
  pod.host_network = false;  // an older runtime, at an address that is the pod's own
  EXPECT_TRUE(CheckPageIsOf(report, pod).ok());
  EXPECT_TRUE(CheckPageIsOf({}, pod).ok());
}

TEST(ListPoolTest, KeepsEachListOnceAndOnlyWhileSomebodyHasIt) {
  ListPool<GivenRail> pool;
  std::vector<GivenRail> rails(2);
  const SharedList<GivenRail> a = pool.Share(SharedList(rails));
  const SharedList<GivenRail> b = pool.Share(SharedList(rails));
  EXPECT_EQ(a.begin(), b.begin());
  for (int i = 1; i < 10'000; ++i) {
    rails[0].rail = i;
    EXPECT_EQ(pool.Share(SharedList(rails))[0].rail, i);
  }
  EXPECT_LE(pool.size(), 129U);
  EXPECT_EQ(pool.Share(a).begin(), a.begin());
  EXPECT_TRUE(pool.Share({}).empty());
}

}  // namespace
}  // namespace railhead::op::verdict
