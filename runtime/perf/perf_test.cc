// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/perf/pattern.h"
#include "runtime/perf/report.h"
#include "runtime/perf/sizes.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead::perf {
namespace {

using railhead::testing::Environment;
using railhead::testing::FreePort;
using railhead::testing::Outcome;
using railhead::testing::Process;
using railhead::testing::RankEnvironment;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SizesTest, TextsBecomeBytes) {
  EXPECT_EQ(*ParseSize("8"), 8U);
  EXPECT_EQ(*ParseSize("64K"), 65536U);
  EXPECT_EQ(*ParseSize("8m"), 8388608U);
  EXPECT_EQ(*ParseSize("2G"), uint64_t{2} << 30);
  for (const char* wrong :
       {"", "K", "-1", "+1", "1.5M", "8MB", " 8", "99999999999G", "0x10", "18446744073709551616"}) {
    EXPECT_FALSE(ParseSize(wrong).ok()) << wrong;
  }
}

TEST(SizesTest, TheStepsGoFromBeginToEnd) {
  EXPECT_THAT(*Sizes(8, 128, 4), ElementsAre(8, 32, 128));
  EXPECT_THAT(*Sizes(8, 127, 4), ElementsAre(8, 32));
  EXPECT_THAT(*Sizes(10, 10, 2), ElementsAre(8));
  EXPECT_THAT(*Sizes(4, uint64_t{1} << 40, 1 << 30), ElementsAre(4, uint64_t{4} << 30));
  EXPECT_FALSE(Sizes(3, 8, 2).ok());
  EXPECT_FALSE(Sizes(16, 8, 2).ok());
  EXPECT_FALSE(Sizes(8, 16, 1).ok());
  EXPECT_FALSE(Sizes(8, 16, 0).ok());
}

TEST(PatternTest, TheSumIsRightAndEveryDefectShows) {
  for (const int ranks : {1, 2, 3, 8, kMostExactRanks}) {
    std::vector<float> sum(2000);
    std::vector<float> last;
    for (int rank = 0; rank < ranks; ++rank) {
      last.assign(sum.size(), 0);
      FillPattern(rank, 5, absl::MakeSpan(last));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += last[i];
    }
    EXPECT_EQ(CountWrong(ranks, 5, sum), 0U);
    EXPECT_GT(CountWrong(ranks, 6, sum), sum.size() / 2) << "a stale result";
    std::vector<float> defect = sum;
    defect[1234] += 1;
    EXPECT_EQ(CountWrong(ranks, 5, defect), 1U);
    defect[0] = std::nanf("");
    EXPECT_EQ(CountWrong(ranks, 5, defect), 2U);
    for (size_t i = 0; i < sum.size(); ++i) defect[i] = sum[i] - last[i];
    EXPECT_EQ(CountWrong(ranks, 5, defect), sum.size()) << "a missing rank";
    std::vector<float> shifted(sum.begin() + 64, sum.end());
    EXPECT_GT(CountWrong(ranks, 5, shifted), shifted.size() / 2) << "a shifted block";
  }
}

Report Example() {
  Report report;
  report.ranks = 4;
  report.transport = "verbs";
  report.rails = {{0, "rxe0", 1, "verbs", 100, 200}, {1, "rxe1", 1, "verbs", 101, 199}};
  report.rows = {{8000000, {0.5, 0}, {0.25, 3}}};
  return report;
}

TEST(ReportTest, BandwidthsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(AlgorithmBandwidth(8000000, {0.5, {}}), 0.016);
  EXPECT_DOUBLE_EQ(BusBandwidth(4, 8000000, {0.5, {}}), 0.024);
  EXPECT_DOUBLE_EQ(BusBandwidth(1, 8000000, {0.5, {}}), 0);
}

TEST(ReportTest, VerifiedNeedsACheckAndNoWrongValue) {
  Report report = Example();
  EXPECT_EQ(Verified(report), false);
  report.rows[0].in_place.wrong = 0;
  EXPECT_EQ(Verified(report), true);
  report.rows[0].in_place.wrong.reset();
  report.rows[0].out_of_place.wrong.reset();
  EXPECT_EQ(Verified(report), std::nullopt);
}

TEST(ReportTest, TheTableShowsSmallRatesToo) {
  const Report report = Example();
  const std::string row = TableRow(report, report.rows[0]);
  EXPECT_THAT(row, AllOf(HasSubstr("8000000"), HasSubstr("500000.0"), HasSubstr("0.016000"),
                         HasSubstr("0.024000"), HasSubstr("0.048000")));
  EXPECT_THAT(TableFoot(report),
              AllOf(HasSubstr("transport: verbs"), HasSubstr("degraded: no"),
                    HasSubstr("rail 1: rxe1 port 1, verbs, sent 101 B, received 199 B"),
                    HasSubstr("verified: no")));
}

TEST(ReportTest, JsonHasEverything) {
  Report report = Example();
  report.degraded_reason = "rank 1: \xff not UTF-8";
  const auto json = nlohmann::json::parse(Json(report));
  EXPECT_EQ(json["transport"], "verbs");
  EXPECT_EQ(json["degraded"], true);
  EXPECT_EQ(json["rails"][1]["rx_bytes"], 199);
  EXPECT_EQ(json["rails"][1]["device"], "rxe1");
  EXPECT_EQ(json["results"][0]["bytes"], 8000000);
  EXPECT_EQ(json["results"][0]["count"], 2000000);
  EXPECT_DOUBLE_EQ(json["results"][0]["time_us"], 500000);
  EXPECT_DOUBLE_EQ(json["results"][0]["busbw_gbps"], 0.024);
  EXPECT_EQ(json["results"][0]["wrong"], 0);
  EXPECT_EQ(json["results"][0]["in_place"]["wrong"], 3);
  EXPECT_EQ(json["verified"], false);
}

// ---- The program ----

std::vector<Outcome> RunProgram(int world, const std::vector<std::string>& arguments,
                                const Environment& more = {}) {
  const int port = FreePort();
  std::vector<std::string> command = {RAILHEAD_PERF};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<Process> processes;
  for (int rank = 0; rank < world; ++rank) {
    Environment environment = RankEnvironment(rank, world, port);
    for (const auto& [name, value] : more) environment[name] = value;
    processes.push_back(Process::Run(environment, command));
  }
  std::vector<Outcome> outcomes;
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  for (Process& process : processes) outcomes.push_back(process.Wait(deadline));
  return outcomes;
}

TEST(ProgramTest, ChecksEverySizeAndOnlyRankZeroPrints) {
  for (const int world : {1, 2, 3}) {
    const std::vector<Outcome> outcomes =
        RunProgram(world, {"all_reduce", "-b", "4", "-e", "1M", "-f", "8", "-n", "3", "-w", "1",
                           "--check", "-o", "json"});
    for (int rank = 0; rank < world; ++rank) {
      const Outcome& outcome = outcomes[static_cast<size_t>(rank)];
      EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
      if (rank > 0) {
        EXPECT_EQ(outcome.output, "");
      }
    }
    const auto json = nlohmann::json::parse(outcomes[0].output);
    EXPECT_EQ(json["ranks"], world);
    EXPECT_EQ(json["verified"], true);
    EXPECT_EQ(json["transport"], "tcp");
    EXPECT_EQ(json["results"].size(), 7U);
    EXPECT_EQ(json["results"][6]["bytes"], 1048576);
    EXPECT_EQ(json["rails"].size(), 1U);
    if (world > 1) {
      EXPECT_GT(json["rails"][0]["tx_bytes"], 0);
    }
  }
}

TEST(ProgramTest, TheTableEndsWithASummary) {
  const std::vector<Outcome> outcomes =
      RunProgram(2, {"all_reduce", "-b", "8", "-e", "512", "-n", "2", "-w", "0"},
                 {{"RAILHEAD_TRANSPORT", "verbs"}});
  EXPECT_EQ(outcomes[0].exit_code, 0);
  EXPECT_THAT(outcomes[0].output,
              AllOf(HasSubstr("busbw"), HasSubstr("# transport: tcp"),
                    HasSubstr("# degraded: TCP instead of RDMA"), HasSubstr("# rail 0: lo, tcp"),
                    HasSubstr("# verified: not checked")));
}

TEST(ProgramTest, BadArgumentsTeachAndExitWithTwo) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"all_gather"},
                                                    {"all_reduce", "-b", "8X"},
                                                    {"all_reduce", "-b", "8K", "-e", "8"},
                                                    {"all_reduce", "-f", "1"},
                                                    {"all_reduce", "-n", "0"},
                                                    {"all_reduce", "-o", "xml"}}) {
    const Outcome outcome = RunProgram(1, arguments)[0];
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    EXPECT_NE(outcome.output, "");
  }
  const Outcome outcome = RunProgram(1, {"all_reduce"}, {{"RANK", ""}})[0];
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("RANK is not set"));
}

TEST(ProgramTest, HelpTeaches) {
  EXPECT_THAT(RunProgram(1, {"--help"})[0].output, HasSubstr("railhead-perf all_reduce -b 8"));
  EXPECT_THAT(RunProgram(1, {"all_reduce", "--help"})[0].output, HasSubstr("--minbytes"));
  EXPECT_THAT(RunProgram(1, {"--help-env"})[0].output, HasSubstr("RAILHEAD_REQUIRE_RDMA"));
  EXPECT_THAT(RunProgram(1, {"--version"})[0].output, HasSubstr(RAILHEAD_VERSION));
}

TEST(ProgramTest, RequiredRdmaFailsOnAllRanks) {
  const std::vector<Outcome> outcomes = RunProgram(
      2, {"all_reduce"}, {{"RAILHEAD_REQUIRE_RDMA", "1"}, {"RAILHEAD_TRANSPORT", "auto"}});
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.output, HasSubstr("RDMA is required"));
  }
}

}  // namespace
}  // namespace railhead::perf
