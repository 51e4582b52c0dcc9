// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <random>
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
        series.label.push_back({absl::StrCat("label_", label), "a \"text\"\nof two lines"});
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
}

TEST(FamiliesTest, OnePageHasEachFamilyOnce) {
  const Families first = {{"a", "help", MetricType::Counter, {Series(0, 1)}},
                          {"b", "help", MetricType::Gauge, {Series(0, 2)}}};
  const Families second = {{"b", "help", MetricType::Gauge, {Series(1, 3)}},
                           {"c", "help", MetricType::Gauge, {Series(1, 4)}}};
  const std::string text = TextOf(Merge({first, second}));
  EXPECT_THAT(text, HasSubstr("# HELP b help\n# TYPE b gauge\n"
                              "b{job=\"train\",rank=\"0\"} 2\nb{job=\"train\",rank=\"1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("a{job=\"train\",rank=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("c{job=\"train\",rank=\"1\"} 4\n"));
}

// Else Prometheus would drop the whole page.
TEST(FamiliesTest, NoSeriesIsThereTwice) {
  const Families first = {{"a", "help", MetricType::Gauge, {Series(0, 1)}}};
  const Families same = {{"a", "help", MetricType::Gauge, {Series(0, 2), Series(1, 3)}},
                         {"b", "help", MetricType::Gauge, {Series(0, 4)}}};
  const Families other_kind = {{"a", "help", MetricType::Counter, {Series(2, 5)}}};
  EXPECT_EQ(TextOf(Merge({first, same, other_kind})),
            "# HELP a help\n# TYPE a gauge\na{job=\"train\",rank=\"0\"} 1\n"
            "a{job=\"train\",rank=\"1\"} 3\n# HELP b help\n# TYPE b gauge\n");
}

}  // namespace
}  // namespace railhead::metrics
