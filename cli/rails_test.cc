// SPDX-License-Identifier: Apache-2.0
#include "cli/rails.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/access/prometheus.h"
#include "cli/plan.h"

namespace railhead::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Vector(json result) {
  return {{"status", "success"},
          {"data", {{"resultType", "vector"}, {"result", std::move(result)}}}};
}

json Sample(const std::string& space, const std::string& job, int rail, const std::string& value) {
  return {{"metric", {{"namespace", space}, {"job", job}, {"rail", absl::StrCat(rail)}}},
          {"value", json::array({1.5, value})}};
}

class RailsTest : public ::testing::Test {
 protected:
  int Run() {
    out_.str("");
    err_.str("");
    queries_.clear();
    int rounds = 2;
    return RunRails(
        options_,
        [&](const std::string& query) -> absl::StatusOr<std::string> {
          queries_.push_back(query);
          if (!outage_.ok()) return outage_;
          return (absl::StrContains(query, "rail_state") ? lost_ : rates_).dump();
        },
        [&] { return --rounds > 0; }, out_, err_);
  }

  RailsOptions options_;
  json rates_ =
      Vector(json::array({Sample("team", "train", 0, "12.5e9"),
                          Sample("team", "train", 10, "12.25e9"), Sample("a", "b", 0, "1e6")}));
  json lost_ = Vector(json::array());
  absl::Status outage_;
  std::vector<std::string> queries_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(RailsTest, ATableByJobAndRail) {
  EXPECT_EQ(Run(), kRailsShown) << err_.str();
  EXPECT_EQ(out_.str(),
            "NAMESPACE  JOB    RAIL 0  RAIL 10    ALL\n"
            "a          b        0.00        -   0.00\n"
            "team       train   12.50    12.25  24.75\n"
            "GB/s that all ranks of a job send, over 1m\n");
  EXPECT_EQ(queries_[0],
            "sum by (namespace, job, rail) "
            "(rate(railhead_rail_transmit_bytes_total{transport!=\"shm\"}[1m]))");
}

TEST_F(RailsTest, LostRailsAreMarkedAndTold) {
  lost_ = Vector(json::array({Sample("team", "train", 10, "3")}));
  EXPECT_EQ(Run(), kRailsLost);
  EXPECT_THAT(out_.str(), HasSubstr("12.25x"));
  EXPECT_THAT(out_.str(), HasSubstr("x: a rank has lost this rail"));
  options_.json = true;
  EXPECT_EQ(Run(), kRailsLost);
  const json answer = json::parse(out_.str());
  EXPECT_EQ(answer["jobs"][1]["rails"][1]["lostRanks"], 3);
  EXPECT_EQ(answer["jobs"][1]["rails"][1]["rail"], 10);
  EXPECT_EQ(answer["jobs"][1]["bytesPerSecond"], 24.75e9);
}

TEST_F(RailsTest, ACountOfLostRanksMayBeAnyNumber) {
  options_.json = true;
  const std::map<std::string, int64_t> shown = {
      {"12.e95", 1'000'000'000}, {"-1", 0}, {"NaN", 0}, {"+Inf", 0}, {"2.7", 2}};
  for (const auto& [value, ranks] : shown) {
    lost_ = Vector(json::array({Sample("team", "train", 10, value)}));
    Run();
    EXPECT_EQ(json::parse(out_.str())["jobs"][1]["rails"][1]["lostRanks"], ranks) << value;
  }
}

TEST_F(RailsTest, WatchShowsItAgainAndOutlivesAnOutage) {
  options_.watch = true;
  options_.json = true;
  EXPECT_EQ(Run(), kRailsShown);
  EXPECT_EQ(queries_.size(), 4);
  const std::string text = out_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  outage_ = absl::UnavailableError("no connection");
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_EQ(queries_.size(), 2);
  EXPECT_THAT(err_.str(),
              HasSubstr("railhead rails: no connection\nrailhead rails: no connection\n"));
  options_.json = false;
  options_.clears = true;
  outage_ = absl::OkStatus();
  EXPECT_EQ(Run(), kRailsShown);
  EXPECT_THAT(out_.str(), HasSubstr("\x1b[H\x1b[2JNAMESPACE"));
}

TEST_F(RailsTest, NamesAreMatchedAsTheyAre) {
  options_.space = "team";
  options_.job = "a\"b\\c";
  Run();
  EXPECT_THAT(queries_[0], HasSubstr(R"({transport!="shm",namespace="team",job="a\"b\\c"})"));
}

TEST_F(RailsTest, APrometheusWithoutTheMetricOrTheLabelIsSaidSo) {
  rates_ = Vector(json::array());
  EXPECT_EQ(Run(), kRailsLost);
  EXPECT_THAT(out_.str(),
              HasSubstr("Prometheus has no matching series railhead_rail_transmit_bytes_total"));
  rates_ = Vector(json::array({{{"metric", json::object()}, {"value", json::array({1, "5"})}},
                               {{"metric", {{"rail", "0"}}}, {"value", json::array({1, "5e9"})}}}));
  EXPECT_EQ(Run(), kRailsShown);
  EXPECT_THAT(out_.str(), HasSubstr("5.00"));
}

// Jobs are called as their users like.
TEST_F(RailsTest, NothingThatOthersWroteControlsTheTerminal) {
  rates_ = Vector(json::array({Sample("team", "a\x1b[2J", 0, "1e9")}));
  Run();
  EXPECT_THAT(out_.str(), HasSubstr("a\\x1b[2J"));
}

TEST(CheckRailsOptionsTest, WhatIsWrongIsNamedWithWhatIsAllowed) {
  RailsOptions options;
  EXPECT_TRUE(CheckRailsOptions(options).ok());
  for (const char* window : {"", "m", "1", "0m", "1.5m", "1d", "-1m", "1m]) or vector(1"}) {
    options.window = window;
    EXPECT_THAT(std::string(CheckRailsOptions(options).message()), HasSubstr("such as 1m"))
        << window;
  }
  options.window = "30s";
  for (const char* url : {"", "127.0.0.1:9090", "file:///etc/passwd", "http://", "http:///x"}) {
    options.prometheus = url;
    EXPECT_THAT(std::string(CheckRailsOptions(options).message()), HasSubstr("give a URL")) << url;
  }
  options = {};
  options.at = "noon";
  EXPECT_THAT(std::string(CheckRailsOptions(options).message()),
              HasSubstr("--at noon: give a time"));
  options.at = "2026-01-15T12:00:00Z";
  EXPECT_TRUE(CheckRailsOptions(options).ok());
  options.watch = true;
  EXPECT_FALSE(CheckRailsOptions(options).ok());
}

TEST(ParsePrometheusAnswerTest, RefusesWhatIsNoVector) {
  for (const char* text :
       {"", "<html>", "[]", "{}", R"({"status": "success"})",
        R"({"status": "success", "data": {"resultType": "matrix", "result": []}})",
        R"({"status": "success", "data": {"resultType": "vector", "result": [1]}})",
        R"({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {},
            "value": [1, 2]}]}})"}) {
    EXPECT_EQ(ParsePrometheusAnswer(text).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_THAT(std::string(ParsePrometheusAnswer(R"({"status": "error", "error": "parse error"})")
                              .status()
                              .message()),
              HasSubstr("rejects the query: parse error"));
  const auto samples = ParsePrometheusAnswer(
      Vector(json::array({Sample("a", "b", 0, "NaN"), Sample("a", "b", 1, "+Inf"),
                          Sample("a", "b", 2, "7")}))
          .dump());
  ASSERT_TRUE(samples.ok());
  ASSERT_EQ(samples->size(), 1);
  EXPECT_EQ(samples->front().value, 7);
}

}  // namespace
}  // namespace railhead::cli
