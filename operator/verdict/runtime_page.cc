// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/runtime_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kube/json.h"
#include "operator/verdict/prometheus_text.h"

namespace railhead::op::verdict {
namespace {

constexpr size_t kMaxText = 512;
constexpr int kMaxRank = 1'000'000;
constexpr int kMaxRail = 1023;
constexpr int kMaxMtu = 1 << 20;

// What others may put before people: one line, not too long, and UTF-8.
std::string TextOf(const Sample& sample, absl::string_view label) {
  std::string text(sample.Label(label).substr(0, kMaxText));
  for (char& letter : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(letter))) letter = ' ';
  }
  // The parser of our JSON accepts UTF-8 only, so what is written and read again is.
  const absl::StatusOr<kube::Json> clean = kube::ParseJson(kube::DumpJson(text));
  return clean.ok() && clean->is_string() ? clean->get<std::string>() : "";
}

absl::StatusOr<int> NumberOf(const Sample& sample, absl::string_view label, int max) {
  int number = 0;
  if (!absl::SimpleAtoi(sample.Label(label), &number) || number < 0 || number > max) {
    return absl::InvalidArgumentError(
        absl::StrCat("label ", label, " is no number from 0 to ", max));
  }
  return number;
}

absl::Status Twice() { return absl::InvalidArgumentError("it is there twice"); }

absl::Status ReadStart(const Sample& sample, RankReport& rank) {
  if (rank.start.has_value()) return Twice();
  const absl::StatusOr<int> world = NumberOf(sample, "world_size", kMaxRank);
  if (!world.ok()) return world.status();
  rank.start = {*world, TextOf(sample, "transport"), TextOf(sample, "requested"),
                TextOf(sample, "fallback"), TextOf(sample, "trouble")};
  return absl::OkStatus();
}

absl::Status ReadGiven(const Sample& sample, RankReport& rank) {
  const absl::StatusOr<int> number = NumberOf(sample, "rail", kMaxRail);
  const absl::StatusOr<int> mtu = NumberOf(sample, "mtu", kMaxMtu);
  absl::Status status = number.status();
  status.Update(mtu.status());
  if (!status.ok()) return status;
  GivenRail rail = {
      *number, TextOf(sample, "device"),  TextOf(sample, "link_layer"), TextOf(sample, "rate"),
      *mtu,    TextOf(sample, "trouble"), TextOf(sample, "cause")};
  // A cause is that of a trouble, and there is always one.
  if (rail.trouble.empty()) {
    rail.cause.clear();
  } else if (rail.cause.empty()) {
    rail.cause = "other";
  }
  if (std::any_of(rank.given.begin(), rank.given.end(),
                  [&rail](const GivenRail& other) { return other.rail == rail.rail; })) {
    return Twice();
  }
  rank.given.push_back(std::move(rail));
  return absl::OkStatus();
}

absl::Status ReadUsed(const Sample& sample, RankReport& rank) {
  const absl::StatusOr<int> number = NumberOf(sample, "rail", kMaxRail);
  if (!number.ok()) return number.status();
  if (sample.value != 0 && sample.value != 1) {
    return absl::InvalidArgumentError("it is neither 0 nor 1");
  }
  // A rank that has split its communicator has memory beside its rails.
  UsedRail rail = {*number, TextOf(sample, "device"), TextOf(sample, "transport"),
                   sample.value == 1};
  if (std::any_of(rank.used.begin(), rank.used.end(), [&rail](const UsedRail& other) {
        return other.rail == rail.rail && other.device == rail.device &&
               other.transport == rail.transport;
      })) {
    return Twice();
  }
  rank.used.push_back(std::move(rail));
  return absl::OkStatus();
}

absl::Status ReadDegraded(const Sample& sample, RankReport& rank) {
  if (sample.value != 0 && sample.value != 1) {
    return absl::InvalidArgumentError("it is neither 0 nor 1");
  }
  if (!rank.degraded.empty()) return Twice();
  if (sample.value == 1) rank.degraded = TextOf(sample, "reason");
  return absl::OkStatus();
}

template <std::optional<double> RankReport::*field>
absl::Status ReadBytes(const Sample& sample, RankReport& rank) {
  if (std::isnan(sample.value) || sample.value < 0) {
    return absl::InvalidArgumentError("it is no number of bytes");
  }
  if ((rank.*field).has_value()) return Twice();
  rank.*field = sample.value;
  return absl::OkStatus();
}

struct Series {
  absl::string_view name;
  absl::Status (*read)(const Sample& sample, RankReport& rank);
};

constexpr std::array<Series, 8> kSeries = {{
    {"railhead_runtime_info", ReadStart},
    {"railhead_rail_info", ReadGiven},
    {"railhead_rail_state", ReadUsed},
    {"railhead_degraded", ReadDegraded},
    {"railhead_memlock_limit_bytes", ReadBytes<&RankReport::memlock_limit>},
    {"railhead_memlock_wanted_bytes", ReadBytes<&RankReport::memlock_wanted>},
    {"railhead_memlock_least_bytes", ReadBytes<&RankReport::memlock_least>},
    {"railhead_shared_memory_bytes", ReadBytes<&RankReport::shared_memory>},
}};

using Ranks = std::map<std::pair<std::string, int>, RankReport>;

absl::Status ReadSeries(absl::string_view line, const Series& series, Ranks& ranks) {
  const absl::StatusOr<Sample> sample = ParseSample(line);
  if (!sample.ok()) return sample.status();
  const absl::StatusOr<int> number = NumberOf(*sample, "rank", kMaxRank);
  if (!number.ok()) return number.status();
  const std::string job = TextOf(*sample, "job");
  RankReport& rank = ranks[{job, *number}];
  rank.job = job;
  rank.rank = *number;
  return series.read(*sample, rank);
}

}  // namespace

absl::StatusOr<RuntimeReport> ParseRuntimePage(absl::string_view page) {
  if (page.size() > kMaxPageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the page has ", page.size(), " bytes, more than ", kMaxPageBytes));
  }
  Ranks ranks;
  size_t number = 0;
  size_t read = 0;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    ++number;
    const auto error = [&](absl::string_view name, absl::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, " of the page, ", name, ": ", what));
    };
    if (line.size() > kMaxLineBytes) {
      return error("a line", absl::StrCat("is longer than ", kMaxLineBytes, " bytes"));
    }
    const absl::string_view name = NameOfSample(line);
    const auto* const series = std::find_if(
        kSeries.begin(), kSeries.end(), [name](const Series& entry) { return entry.name == name; });
    if (series == kSeries.end()) continue;
    if (++read > kMaxSeries) return error(name, absl::StrCat("more than ", kMaxSeries, " series"));
    const absl::Status status = ReadSeries(absl::StripSuffix(line, "\r"), *series, ranks);
    if (!status.ok()) return error(name, status.message());
  }
  RuntimeReport report;
  for (auto& [key, rank] : ranks) {
    std::sort(rank.given.begin(), rank.given.end(),
              [](const GivenRail& a, const GivenRail& b) { return a.rail < b.rail; });
    std::stable_sort(rank.used.begin(), rank.used.end(),
                     [](const UsedRail& a, const UsedRail& b) { return a.rail < b.rail; });
    report.ranks.push_back(std::move(rank));
  }
  return report;
}

}  // namespace railhead::op::verdict
