// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"
#include "runtime/perf/collectives.h"
#include "runtime/perf/preflight.h"
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
using ::testing::Not;

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
  EXPECT_THAT(*Sizes({8, 128, 4}, 4), ElementsAre(8, 32, 128));
  EXPECT_THAT(*Sizes({8, 127, 4}, 4), ElementsAre(8, 32));
  EXPECT_THAT(*Sizes({4, uint64_t{1} << 40, 1 << 30}, 4), ElementsAre(4, uint64_t{4} << 30));
  EXPECT_FALSE(CheckRange({16, 8, 2}).ok());
  EXPECT_FALSE(CheckRange({8, 16, 1}).ok());
  EXPECT_FALSE(CheckRange({8, 16, 0}).ok());
  EXPECT_TRUE(CheckRange({8, 8, 2}).ok());
}

TEST(SizesTest, AreWholeUnitsAndZeroOnlyIfAskedFor) {
  EXPECT_THAT(*Sizes({10, 10, 2}, 4), ElementsAre(8));
  EXPECT_THAT(*Sizes({3, 8, 2}, 4), ElementsAre(4));
  EXPECT_THAT(*Sizes({8, 200, 2}, 24), ElementsAre(24, 48, 120));
  EXPECT_THAT(*Sizes({0, 0, 2}, 24), ElementsAre(0));
  EXPECT_THAT(*Sizes({0, 50, 2}, 24), ElementsAre(0, 24, 48));
  EXPECT_EQ(Sizes({8, 23, 2}, 24).status().code(), absl::StatusCode::kInvalidArgument);
}

const Collective& Named(const std::string& name) {
  for (const Collective& collective : Collectives()) {
    if (name == collective.name) return collective;
  }
  ADD_FAILURE() << name;
  return Collectives()[0];
}

Report Example(const std::string& collective = "all_reduce") {
  Report report;
  report.collective = &Named(collective);
  report.type = "float";
  report.redop = "sum";
  report.root = 2;
  report.ranks = 4;
  report.transport = "verbs";
  report.rails = {{0, "rxe0", 1, "verbs", 100, 200}, {1, "rxe1", 1, "verbs", 101, 199}};
  report.rows = {{8000000, 2000000, "float", "sum", {0.5, 0}, Timing{0.25, 3}}};
  return report;
}

TEST(ReportTest, BandwidthsAreThoseOfNcclTests) {
  const Timing timing = {0.5, {}};
  EXPECT_DOUBLE_EQ(AlgorithmBandwidth(8000000, timing), 0.016);
  for (const auto& [collective, factor] : std::map<std::string, double>{{"all_reduce", 1.5},
                                                                        {"all_gather", 0.75},
                                                                        {"reduce_scatter", 0.75},
                                                                        {"alltoall", 0.75},
                                                                        {"gather", 0.75},
                                                                        {"scatter", 0.75},
                                                                        {"broadcast", 1},
                                                                        {"reduce", 1},
                                                                        {"sendrecv", 1}}) {
    Report report = Example(collective);
    EXPECT_DOUBLE_EQ(BusBandwidth(report, 8000000, timing), 0.016 * factor) << collective;
  }
  Report alone = Example();
  alone.ranks = 1;
  EXPECT_DOUBLE_EQ(BusBandwidth(alone, 8000000, timing), 0);
}

TEST(ReportTest, VerifiedNeedsACheckAndNoWrongValue) {
  Report report = Example();
  EXPECT_EQ(Verified(report), false);
  report.rows[0].in_place->wrong = 0;
  EXPECT_EQ(Verified(report), true);
  report.rows[0].in_place.reset();
  EXPECT_EQ(Verified(report), true);
  report.rows[0].out_of_place.wrong.reset();
  EXPECT_EQ(Verified(report), std::nullopt);
}

std::vector<std::string> Words(const std::string& line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

TEST(ReportTest, ColumnsStandUnderTheirNames) {
  Report report = Example();
  EXPECT_THAT(Words(TableRow(report, report.rows[0])),
              ElementsAre("8000000", "2000000", "float", "sum", "500000.0", "0.016000", "0.024000",
                          "0", "250000.0", "0.032000", "0.048000", "3"));
  report = Example("reduce");
  report.rows[0].in_place.reset();
  report.rows[0].out_of_place.wrong.reset();
  EXPECT_THAT(Words(TableRow(report, report.rows[0])),
              ElementsAre("8000000", "2000000", "float", "sum", "2", "500000.0", "0.016000",
                          "0.016000", "-", "-", "-", "-", "N/A"));
  // Every line is as wide as the rows.
  for (const char* collective : {"all_reduce", "reduce"}) {
    report = Example(collective);
    const std::vector<std::string> head =
        absl::StrSplit(TableHead(report), '\n', absl::SkipEmpty());
    ASSERT_EQ(head.size(), 5U);
    for (size_t line = 2; line < head.size(); ++line) {
      EXPECT_EQ(head[line].size() + 1, TableRow(report, report.rows[0]).size()) << head[line];
    }
    EXPECT_EQ(head[3].find("root") != std::string::npos, report.collective->has_root);
  }
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
  EXPECT_EQ(json["results"][0]["type"], "float");
  EXPECT_EQ(json["results"][0]["redop"], "sum");
  EXPECT_EQ(json["collective"], "all_reduce");
  EXPECT_EQ(json["type"], "float");
  EXPECT_EQ(json["redop"], "sum");
  EXPECT_EQ(json["root"], nullptr);
  EXPECT_EQ(json["results"][0]["in_place"]["wrong"], 3);
  EXPECT_EQ(json["verified"], false);

  report = Example("reduce");
  report.rows[0].in_place.reset();
  const auto reduce = nlohmann::json::parse(Json(report));
  EXPECT_EQ(reduce["collective"], "reduce");
  EXPECT_EQ(reduce["root"], 2);
  EXPECT_EQ(reduce["results"][0]["in_place"], nullptr);
}

// ---- Pre-flight ----

PreflightReport Preflight() {
  const int rank[] = {2};
  const int all[] = {0, 1, 2};
  PreflightReport report;
  report.Add({rhFindingOk, "transport", -1, "", "", all, 3, "all 3 ranks", "verbs \xff", ""});
  report.Add({rhFindingWarn, "rate", 1, "mlx5_1", "verbs", rank, 1,
              "rail 1 (mlx5_1 port 1, verbs): rank 2 (pod p)", "100 Gb/sec, others have 400 Gb/sec",
              "reseat the cable"});
  return report;
}

TEST(PreflightReportTest, ALineForEachFinding) {
  EXPECT_EQ(Preflight().Table(3),
            "# railhead-perf --preflight: 3 rank(s)\n"
            "ok    transport  all 3 ranks: verbs \\xff\n"
            "WARN  rate       rail 1 (mlx5_1 port 1, verbs): rank 2 (pod p): 100 Gb/sec, "
            "others have 400 Gb/sec\n"
            "                 fix: reseat the cable\n"
            "# 1 ok, 0 note, 1 warn, 0 fail\n");
}

TEST(PreflightReportTest, JsonHasEverythingAndTheWorstVerdict) {
  const auto json = nlohmann::json::parse(Preflight().Json(3));
  EXPECT_EQ(json["ranks"], 3);
  EXPECT_EQ(json["verdict"], "warn");
  EXPECT_EQ(json["findings"][0]["rail"], nullptr);
  EXPECT_EQ(json["findings"][0]["ranks"], std::vector<int>({0, 1, 2}));
  const auto& rate = json["findings"][1];
  EXPECT_EQ(rate["verdict"], "warn");
  EXPECT_EQ(rate["severity"], "warn");
  EXPECT_EQ(rate["check"], "rate");
  EXPECT_EQ(rate["rail"], 1);
  EXPECT_EQ(rate["device"], "mlx5_1");
  EXPECT_EQ(rate["transport"], "verbs");
  EXPECT_EQ(rate["ranks"], std::vector<int>({2}));
  for (const char* name : {"where", "object"}) {
    EXPECT_EQ(rate[name], "rail 1 (mlx5_1 port 1, verbs): rank 2 (pod p)");
  }
  for (const char* name : {"value", "observed"}) {
    EXPECT_EQ(rate[name], "100 Gb/sec, others have 400 Gb/sec");
  }
  EXPECT_EQ(rate["fix"], "reseat the cable");
  EXPECT_EQ(nlohmann::json::parse(PreflightReport().Json(1))["verdict"], "ok");
}

// ---- The program ----

std::vector<Process> StartProgram(int world, const std::vector<std::string>& arguments,
                                  const Environment& more = {},
                                  const std::string& program = RAILHEAD_PERF) {
  const int port = FreePort();
  std::vector<std::string> command = {program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<Process> processes;
  for (int rank = 0; rank < world; ++rank) {
    Environment environment = RankEnvironment(rank, world, port);
    for (const auto& [name, value] : more) environment[name] = value;
    processes.push_back(Process::Run(environment, command));
  }
  return processes;
}

std::vector<Outcome> EndsOf(std::vector<Process> processes) {
  std::vector<Outcome> outcomes;
  const absl::Time deadline = MonotonicNow() + absl::Seconds(200);
  for (Process& process : processes) outcomes.push_back(process.Wait(deadline));
  return outcomes;
}

std::vector<Outcome> RunProgram(int world, const std::vector<std::string>& arguments,
                                const Environment& more = {},
                                const std::string& program = RAILHEAD_PERF) {
  return EndsOf(StartProgram(world, arguments, more, program));
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

TEST(ProgramTest, RepeatsAllSizesUntilAFileExists) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/perf-until-", ::getpid());
  const std::vector<std::string> command = {"all_reduce", "-b",      "4",       "-e", "16",
                                            "-f",         "4",       "-n",      "1",  "-w",
                                            "0",          "--check", "--until", file};
  const auto rows = [](const std::string& output) {
    std::vector<std::string> sizes;
    for (const absl::string_view line : absl::StrSplit(output, '\n')) {
      const std::vector<std::string> words = Words(std::string(line));
      if (!words.empty() && words[0] != "#") sizes.push_back(words[0]);
    }
    return sizes;
  };
  std::vector<Process> processes = StartProgram(2, command);
  EXPECT_TRUE(processes[0].WaitForOutput(
      [&](const std::string& output) { return rows(output).size() >= 5; },
      MonotonicNow() + absl::Seconds(60)));
  std::ofstream(file).close();
  const std::vector<Outcome> repeated = EndsOf(std::move(processes));
  const std::vector<Outcome> once = RunProgram(2, command);  // the file is there at the start
  std::filesystem::remove(file);
  for (const std::vector<Outcome>* outcomes : {&repeated, &once}) {
    for (const Outcome& outcome : *outcomes) EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_THAT((*outcomes)[0].output, HasSubstr("# verified: yes"));
  }
  EXPECT_THAT(rows(once[0].output), ElementsAre("4", "16"));
  // Whole passes.
  const std::vector<std::string> sizes = rows(repeated[0].output);
  EXPECT_EQ(sizes.size() % 2, 0U);
  for (size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(sizes[i], i % 2 == 0 ? "4" : "16");
}

// A FIFO can be opened for writing without waiting only while another process reads it.
TEST(ProgramTest, ReadsTheLengthOfAPauseBeforeItMeasures) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/perf-pause-", ::getpid());
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  std::vector<Process> processes =
      StartProgram(1, {"all_reduce", "-b", "4", "-e", "4", "-n", "1", "-w", "0", "--pause", file});
  int writer = -1;
  const absl::Time patience = MonotonicNow() + absl::Seconds(60);
  while (writer < 0 && MonotonicNow() < patience) {
    writer = ::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (writer < 0) absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(::write(writer, "0.001\n", 6), 6) << "it does not read the file";
  ::close(writer);
  const std::vector<Outcome> outcomes = EndsOf(std::move(processes));
  std::filesystem::remove(file);
  EXPECT_EQ(outcomes[0].exit_code, 0) << outcomes[0].output;
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

// With four ranks the model always expects two ways to take about as long for so few bytes.
TEST(ProgramTest, ExplainsWhatWasEstimatedLearntAndLaidDown) {
  const std::vector<std::string> few = {"all_reduce", "-b", "64", "-e", "64",
                                        "-n",         "1",  "-w", "0",  "--explain"};
  EXPECT_THAT(RunProgram(4, few)[0].output,
              AllOf(HasSubstr("all_reduce of 64 bytes among 4 ranks: "),
                    HasSubstr(", estimated: the fastest by the model, until "), HasSubstr("ring "),
                    HasSubstr(" us estimated"), Not(HasSubstr(" measured"))));
  const std::vector<std::string> many = {"all_reduce", "-b", "64", "-e", "64", "--explain"};
  const std::vector<Outcome> outcomes = RunProgram(4, many);
  EXPECT_THAT(
      outcomes[0].output,
      AllOf(HasSubstr(", learnt: the fastest in calls of up to 64 bytes"),
            HasSubstr(" us estimated"), HasSubstr(" us measured"), Not(HasSubstr("busbw"))));
  EXPECT_EQ(outcomes[1].output, "");
  EXPECT_THAT(RunProgram(4, few, {{"RAILHEAD_ALGO", "all_reduce=ring"}})[0].output,
              AllOf(HasSubstr(": ring, set by RAILHEAD_ALGO"), Not(HasSubstr(" measured"))));
}

// Also where ranks are in one pod, and would share memory in a job.
TEST(ProgramTest, PreflightAsksOverTcpAndOnlyRankZeroPrints) {
  const std::vector<Outcome> outcomes = RunProgram(
      3, {"--preflight", "-o", "json"},
      {{"RAILHEAD_POD", "one"}, {"RAILHEAD_TRANSPORT", "auto"}, {"NCCL_COLLNET_ENABLE", "1"}});
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    EXPECT_EQ(outcomes[rank].exit_code, 0) << outcomes[rank].output;
    if (rank > 0) {
      EXPECT_EQ(outcomes[rank].output, "");
    }
  }
  const auto json = nlohmann::json::parse(outcomes[0].output);
  EXPECT_EQ(json["ranks"], 3);
  std::map<std::string, nlohmann::json> first;
  for (const auto& finding : json["findings"]) first.try_emplace(finding["check"], finding);
  EXPECT_EQ(first["transport"]["value"], "tcp");
  EXPECT_EQ(first["port"]["verdict"], "ok");
  EXPECT_EQ(first["ping"]["verdict"], "ok");
  EXPECT_EQ(first["ping"]["device"], "lo");
  EXPECT_EQ(first["sharp"]["verdict"], "warn");
  EXPECT_EQ(first["sharp"]["value"], "has no InfiniBand rail");
  EXPECT_EQ(first["ping"]["ranks"], std::vector<int>({0, 1, 2}));
  EXPECT_THAT(first["ping"]["value"].get<std::string>(),
              HasSubstr("(median of 3 pairs; slowest: "));
}

TEST(ProgramTest, PreflightFailsOnAllRanksForRailsThatDoNotWork) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/preflight-rails-", ::getpid(), ".json");
  std::ofstream(path) << R"({"apiVersion": "railhead.io/v1alpha1", "kind": "PodRails",
      "node": "n", "rails": [{"rail": 5, "device": "nosuch0", "port": 1}]})";
  const std::vector<Outcome> outcomes = RunProgram(
      2, {"--preflight"}, {{"RAILHEAD_RAILS_FILE", path}, {"RAILHEAD_TRANSPORT", "auto"}});
  std::filesystem::remove(path);
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  EXPECT_THAT(outcomes[0].output,
              AllOf(HasSubstr("FAIL  transport     all 2 ranks: TCP instead of RDMA"),
                    HasSubstr("FAIL  port          rail 5 (nosuch0 port 1, verbs): all 2 ranks: "),
                    HasSubstr("\n                    fix: repair it"), HasSubstr("2 fail")));
}

TEST(ProgramTest, BadArgumentsTeachAndExitWithTwo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{}, "no collective given"},
      {{"all_scatter"}, "all_scatter"},
      {{"all_reduce", "-b", "8X"}, "'8X' is not a size"},
      {{"all_reduce", "-b", "8K", "-e", "8"}, "below the smallest"},
      {{"all_reduce", "-f", "1"}, "at least 2"},
      {{"all_reduce", "-n", "0"}, "--iters"},
      {{"all_reduce", "-o", "xml"}, "--output"},
      {{"all_reduce", "-d", "fp32"}, "bfloat16"},
      {{"all_reduce", "--op", "mean"}, "bxor"},
      {{"all_reduce", "-d", "half", "--op", "bxor"}, "half is a float"},
      {{"all_reduce", "-b", "4", "-e", "4", "-d", "double"}, "below the minimum of 8"},
      {{"all_reduce", "--root", "0"}, "--root"},
      {{"all_gather", "--op", "sum"}, "--op"},
      {{"broadcast", "--root", "-1"}, "--root"},
      {{"broadcast", "--root", "1"}, "root 1 does not exist; ranks go from 0 to 0"},
      {{"barrier", "--check"}, "--check"},
      {{"all_reduce", "--transport", "rdma"}, "--transport"},
      {{"all_reduce", "--until"}, "--until"},
      {{"-o", "json"}, "--output requires --preflight"},
      {{"--preflight", "all_reduce"}, "without a collective"}};
  for (const auto& [arguments, text] : wrong) {
    const Outcome outcome = RunProgram(1, arguments)[0];
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(text));
  }
  const Outcome outcome = RunProgram(1, {"all_reduce"}, {{"RANK", ""}})[0];
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("RANK is not set"));
}

TEST(ProgramTest, WhatCannotBeCheckedIsRefusedOnAllRanks) {
  const std::vector<std::string> average = {
      "all_reduce", "-d", "f8e5m2", "--op", "avg", "-e", "64", "-n", "1", "--transport", "shm"};
  std::vector<std::string> checked = average;
  checked.emplace_back("--check");
  for (const Outcome& outcome : RunProgram(9, checked, {{"RAILHEAD_POD", "one"}})) {
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.output, HasSubstr("up to 8 ranks, not 9"));
  }
  for (const Outcome& outcome : RunProgram(9, average, {{"RAILHEAD_POD", "one"}})) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  }
}

TEST(ProgramTest, HelpTeaches) {
  const std::string all = RunProgram(1, {"--help"})[0].output;
  EXPECT_THAT(all, HasSubstr("railhead-perf all_reduce -b 8"));
  for (const Collective& collective : Collectives()) {
    EXPECT_THAT(all, HasSubstr(collective.title));
    const std::string help = RunProgram(1, {collective.name, "--help"})[0].output;
    EXPECT_THAT(help, AllOf(HasSubstr("--iters"), HasSubstr(collective.measure)));
    EXPECT_EQ(help.find("--minbytes") != std::string::npos, collective.has_data());
    EXPECT_EQ(help.find("--op ") != std::string::npos, collective.reduces());
    EXPECT_EQ(help.find("--root") != std::string::npos, collective.has_root);
  }
  EXPECT_THAT(RunProgram(1, {"--help-env"})[0].output, HasSubstr("RAILHEAD_REQUIRE_RDMA"));
  EXPECT_THAT(RunProgram(1, {"--version"})[0].output, HasSubstr(RAILHEAD_VERSION));
}

// Every type and operator, with a few values and with more than the 8 KiB up to which shared memory
// goes another way.
class EveryCollectiveTest
    : public ::testing::TestWithParam<std::tuple<const Collective*, std::string>> {};

TEST_P(EveryCollectiveTest, GivesTheKnownAnswers) {
  const auto& [collective, transport] = GetParam();
  for (int world = 1; world <= 4; ++world) {
    std::vector<std::string> arguments = {
        collective->name, "--transport", transport, "-o", "json", "-n", "1", "-w", "1"};
    const auto add = [&](const std::vector<std::string>& more) {
      arguments.insert(arguments.end(), more.begin(), more.end());
    };
    if (collective->has_data()) {
      add({"-b", "1", "-e", "20000", "-f", "100", "-d", "all", "--check"});
    }
    if (collective->reduces()) add({"--op", "all"});
    if (collective->has_root) add({"--root", absl::StrCat(world - 1)});
    const std::vector<Outcome> outcomes = RunProgram(world, arguments, {{"RAILHEAD_POD", "one"}});
    for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    const auto json = nlohmann::json::parse(outcomes[0].output);
    EXPECT_EQ(json["collective"], collective->name);
    if (world > 1) {
      EXPECT_EQ(json["transport"], transport);
    }
    EXPECT_EQ(json["type"], collective->has_data() ? "all" : "none");
    EXPECT_EQ(json["redop"], collective->reduces() ? "all" : "none");
    EXPECT_EQ(json["verified"],
              collective->has_data() ? nlohmann::json(true) : nlohmann::json(nullptr));
    const size_t kinds = collective->reduces() ? 94 : collective->has_data() ? 14 : 1;
    EXPECT_EQ(json["results"].size(), kinds * (collective->has_data() ? 3 : 1));
    EXPECT_EQ(json["results"][0]["in_place"].is_object(), collective->in_place);
  }
}

// Of 1000 values, by collectives that faulty_collectives.cc gets wrong in three ways.
TEST(ProgramTest, WrongValuesAreCountedAndExitWithOne) {
  const auto results = [](const std::string& collective, int exit_code) {
    const std::vector<Outcome> outcomes = RunProgram(
        2,
        {collective, "-d", "uint8", "-b", "1000", "-e", "1000", "-n", "1", "--check", "-o", "json"},
        {}, RAILHEAD_PERF_FAULTY);
    for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, exit_code);
    auto json = nlohmann::json::parse(outcomes[0].output);
    EXPECT_EQ(json["verified"], exit_code == 0);
    return json["results"][0];
  };
  const auto missing = results("all_reduce", 1);
  EXPECT_EQ(missing["wrong"], 2000);
  EXPECT_EQ(missing["in_place"]["wrong"], 2000);
  const auto stale = results("reduce_scatter", 1);
  EXPECT_GT(stale["wrong"], 900);
  EXPECT_GT(stale["in_place"]["wrong"], 900);
  const auto shifted = results("broadcast", 1);
  EXPECT_GT(shifted["wrong"], 900);
  EXPECT_GT(shifted["in_place"]["wrong"], 900);
  EXPECT_EQ(results("scatter", 0)["wrong"], 0);
}

std::vector<const Collective*> Pointers() {
  std::vector<const Collective*> all;
  for (const Collective& collective : Collectives()) all.push_back(&collective);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Program, EveryCollectiveTest,
                         ::testing::Combine(::testing::ValuesIn(Pointers()),
                                            ::testing::Values("tcp", "shm")),
                         [](const auto& of) {
                           return absl::StrCat(std::get<0>(of.param)->name, "_",
                                               std::get<1>(of.param));
                         });

TEST(ProgramTest, RequiredRdmaFailsOnAllRanks) {
  const std::vector<Outcome> outcomes = RunProgram(
      2, {"all_reduce"}, {{"RAILHEAD_REQUIRE_RDMA", "1"}, {"RAILHEAD_TRANSPORT", "auto"}});
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.output, HasSubstr("RDMA is required"));
  }
}

TEST(ProgramTest, AFallbackThatIsAllowedIsToldWithoutAWarning) {
  const std::vector<std::string> few = {"all_reduce", "-b", "8", "-e", "8", "-n", "1", "-w", "0"};
  for (const bool allowed : {false, true}) {
    const std::vector<Outcome> outcomes =
        RunProgram(2, few,
                   {{"RAILHEAD_TRANSPORT", "verbs"},
                    {"RAILHEAD_LOG", "warn"},
                    {"RAILHEAD_FALLBACK", allowed ? "allow" : "warn"}});
    EXPECT_THAT(outcomes[0].output, HasSubstr("# degraded: TCP instead of RDMA"));
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.exit_code, 0);
      EXPECT_EQ(outcome.output.find(": degraded: TCP instead of RDMA") == std::string::npos,
                allowed)
          << outcome.output;
    }
  }
}

TEST(ProgramTest, AFallbackThatIsRefusedFailsOnAllRanks) {
  const std::vector<Outcome> outcomes = RunProgram(
      2, {"all_reduce"}, {{"RAILHEAD_FALLBACK", "fail"}, {"RAILHEAD_TRANSPORT", "verbs"}});
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("RAILHEAD_FALLBACK=fail on rank 0"),
                                      HasSubstr("TCP instead of RDMA: each of rank 0")));
  }
}

}  // namespace
}  // namespace railhead::perf
