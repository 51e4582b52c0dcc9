// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOf(const Families& families) {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

ClientMetric Series(int rank, double value) {
  ClientMetric series;
  series.label = {{"job", "train"}, {"rank", absl::StrCat(rank)}};
  series.counter.value = series.gauge.value = value;
  return series;
}

Families RandomFamilies(std::mt19937& random) {
  const auto up_to = [&random](int most) {
    return std::uniform_int_distribution<int>(0, most)(random);
  };
  constexpr double kValues[] = {0, -1.5, 1e300, std::numeric_limits<double>::infinity()};
  Families families(static_cast<size_t>(up_to(4)));
  for (size_t i = 0; i < families.size(); ++i) {
    families[i].name = absl::StrCat("family_", i);
    families[i].help = std::string(static_cast<size_t>(up_to(300)), '\\');
    families[i].type = std::vector{MetricType::Counter, MetricType::Gauge,
                                   MetricType::Histogram}[static_cast<size_t>(up_to(2))];
    for (int rank = up_to(3); rank > 0; --rank) {
      ClientMetric series = Series(rank, kValues[up_to(3)]);
      for (int label = up_to(3); label > 0; --label) {
        series.label.push_back({absl::StrCat("label_", label), "a \"text\" with \\"});
      }
      if (families[i].type == MetricType::Histogram) {
        series.histogram.sample_count = std::numeric_limits<uint64_t>::max();
        series.histogram.sample_sum = kValues[up_to(3)];
        for (int bucket = up_to(30); bucket > 0; --bucket) {
          series.histogram.bucket.push_back({static_cast<uint64_t>(bucket), kValues[up_to(3)]});
        }
      }
      families[i].metric.push_back(std::move(series));
    }
  }
  return families;
}

TEST(FamiliesTest, ArriveAsTheyWereSent) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same cases each time
  for (int i = 0; i < 500; ++i) {
    const Families families = RandomFamilies(random);
    const std::string bytes = Encode(families);
    const absl::StatusOr<Families> parsed = ParseFamilies(bytes);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(TextOf(*parsed), TextOf(families));
    EXPECT_EQ(Encode(*parsed), bytes);
    const size_t part = std::uniform_int_distribution<size_t>(0, bytes.size() - 1)(random);
    EXPECT_FALSE(ParseFamilies(absl::string_view(bytes).substr(0, part)).ok()) << part;
    EXPECT_FALSE(ParseFamilies(bytes + "x").ok());
  }
}

TEST(FamiliesTest, WhatWouldSpoilThePageIsRefused) {
  const auto refused = [](absl::string_view family, ClientMetric series) {
    return !ParseFamilies(
                Encode({{std::string(family), "help", MetricType::Gauge, {std::move(series)}}}))
                .ok();
  };
  EXPECT_FALSE(refused("railhead_rail_state", Series(1, 1)));
  for (const char* name : {"", "1st", "a b", "a\nb", "a{"})
    EXPECT_TRUE(refused(name, Series(1, 1)));
  ClientMetric strange = Series(1, 1);
  strange.label.push_back({"la\"bel", "value"});
  EXPECT_TRUE(refused("a", strange));
  ClientMetric nobodys = Series(1, 1);
  nobodys.label.erase(nobodys.label.begin());
  EXPECT_TRUE(refused("a", nobodys));
  for (const char* text : {"caf\xe9", "\xc3", "a\x01"}) {
    ClientMetric unreadable = Series(1, 1);
    unreadable.label.push_back({"label", text});
    EXPECT_TRUE(refused("a", unreadable)) << text;
  }
  ClientMetric apart = Series(1, 1);
  apart.label.push_back({"process", "1"});
  EXPECT_TRUE(refused("a", apart)) << "only the page adds it";
  EXPECT_TRUE(refused("railhead_metrics_conflicts", Series(1, 1)));
}

std::string TextOf(const std::vector<Families>& processes) {
  std::vector<Page> pages;
  for (const Families& families : processes)
    pages.push_back({absl::StrCat(pages.size()), families});
  const MergedPage merged = Merge(std::move(pages));
  EXPECT_THAT(merged.warnings, ::testing::IsEmpty());
  return TextOf(merged.families);
}

TEST(FamiliesTest, OnePageHasEachFamilyOnce) {
  const Families first = {{"a", "help", MetricType::Counter, {Series(0, 1)}},
                          {"b", "help", MetricType::Gauge, {Series(0, 2)}}};
  const Families second = {{"b", "help", MetricType::Gauge, {Series(1, 3)}},
                           {"c", "help", MetricType::Gauge, {Series(1, 4)}}};
  const std::string text = TextOf(std::vector{first, second});
  EXPECT_THAT(text, HasSubstr("# HELP b help\n# TYPE b gauge\n"
                              "b{job=\"train\",rank=\"0\"} 2\nb{job=\"train\",rank=\"1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("a{job=\"train\",rank=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("c{job=\"train\",rank=\"1\"} 4\n"));
}

// A process may use Railhead's communicators and NCCL over Railhead's plugin.
TEST(FamiliesTest, ARankMayHaveSeveralSources) {
  ClientMetric series = Series(0, 2);
  series.label.push_back({kSourceLabel, "nccl"});
  const Families own = {{"a", "help", MetricType::Gauge, {Series(0, 1)}}};
  const Families nccl = {{"a", "help", MetricType::Gauge, {series}}};
  EXPECT_THAT(TextOf(Merge({{"17", own}, {"17", nccl}}).families),
              HasSubstr("a{job=\"train\",rank=\"0\"} 1\n"
                        "a{job=\"train\",rank=\"0\",source=\"nccl\"} 2\n"));
  const MergedPage twice = Merge({{"17", nccl}, {"23", nccl}});
  EXPECT_THAT(
      TextOf(twice.families),
      HasSubstr("railhead_metrics_conflicts{job=\"train\",rank=\"0\",source=\"nccl\"} 2\n"));
}

// Prometheus refuses a page that has a series twice, and a process that is not there is not
// noticed.
TEST(FamiliesTest, ProcessesThatAreTheSameRankAreToldApart) {
  const Families first = {{"a", "help", MetricType::Gauge, {Series(0, 1)}}};
  const Families same = {{"a", "help", MetricType::Gauge, {Series(0, 2), Series(1, 3)}},
                         {"b", "help", MetricType::Gauge, {Series(0, 4)}}};
  const MergedPage merged = Merge({{"17", first}, {"23", same}});
  const std::string text = TextOf(merged.families);
  EXPECT_THAT(text, HasSubstr("a{job=\"train\",rank=\"0\",process=\"17\"} 1\n"
                              "a{job=\"train\",rank=\"0\",process=\"23\"} 2\n"
                              "a{job=\"train\",rank=\"1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("b{job=\"train\",rank=\"0\",process=\"23\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("railhead_metrics_conflicts{job=\"train\",rank=\"0\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("conflicts{job=\"train\",rank=\"1\"}")));
  ASSERT_EQ(merged.warnings.size(), 1U);
  EXPECT_EQ(merged.warnings[0].subject, "rank 0 of job 'train'");
  EXPECT_THAT(merged.warnings[0].text,
              HasSubstr("processes 17 and 23 of this pod are both rank 0 of job 'train'"));
}

TEST(FamiliesTest, AFamilyOfAnotherVersionIsReported) {
  const Families first = {{"a", "help", MetricType::Gauge, {Series(0, 1)}}};
  const Families other_kind = {{"a", "help", MetricType::Counter, {Series(2, 5)}}};
  const MergedPage merged = Merge({{"17", first}, {"23", other_kind}});
  EXPECT_THAT(TextOf(merged.families), Not(HasSubstr("rank=\"2\"")));
  ASSERT_EQ(merged.warnings.size(), 1U);
  EXPECT_THAT(merged.warnings[0].text, HasSubstr("lacks a of process 23"));
}

// Whatever ranks the processes are: each of their series is there once, and no two are alike.
TEST(FamiliesTest, NoSeriesIsLostOrThereTwice) {
  std::mt19937 random(2);  // NOLINT(cert-msc51-cpp)
  const auto up_to = [&random](int most) {
    return std::uniform_int_distribution<int>(0, most)(random);
  };
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<Page> pages;
    std::multiset<double> values;
    std::map<int, int> processes;  // by rank
    for (int process = up_to(5); process >= 0; --process) {
      // Numbers of processes of several containers.
      Page page = {absl::StrCat(up_to(3)), {}};
      const int rank = up_to(4);
      bool has_series = false;
      for (const char* name : {"a", "b"}) {
        if (up_to(3) == 0) continue;
        const double value = static_cast<double>(values.size());
        page.families.push_back({name, "help", MetricType::Gauge, {Series(rank, value)}});
        values.insert(value);
        has_series = true;
      }
      processes[rank] += has_series ? 1 : 0;
      pages.push_back(std::move(page));
    }
    const MergedPage merged = Merge(std::move(pages));
    std::multiset<double> found;
    std::set<std::string> names;
    std::map<std::string, double> conflicts;
    for (const prometheus::MetricFamily& family : merged.families) {
      for (const ClientMetric& series : family.metric) {
        std::string name = family.name;
        for (const auto& label : series.label) absl::StrAppend(&name, ",", label.name, label.value);
        EXPECT_TRUE(names.insert(name).second) << name;
        if (family.name == "railhead_metrics_conflicts") {
          conflicts[series.label[1].value] = series.gauge.value;
        } else {
          found.insert(series.gauge.value);
        }
      }
    }
    EXPECT_EQ(found, values);
    std::map<std::string, double> wanted;
    for (const auto& [rank, count] : processes) {
      if (count > 1) wanted[absl::StrCat(rank)] = count;
    }
    EXPECT_EQ(conflicts, wanted);
    EXPECT_EQ(merged.warnings.size(), wanted.size());
  }
}

}  // namespace
}  // namespace railhead::metrics
