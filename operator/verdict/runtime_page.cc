// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/runtime_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/printable_text.h"
#include "fabric/rail_limit.h"
#include "operator/verdict/prometheus_text.h"

namespace railhead::op::verdict {
namespace {

constexpr size_t kMaxText = 512;
constexpr int kMaxRank = 1'000'000;
constexpr int kMaxMtu = 1 << 20;

// Returns a label, which users control, as one line of printable UTF-8 of limited length.
std::string TextOf(const Sample& sample, absl::string_view label) {
  return PrintableText(sample.Label(label), kMaxText);
}

absl::StatusOr<int> NumberOf(const Sample& sample, absl::string_view label, int max) {
  int number = 0;
  if (!absl::SimpleAtoi(sample.Label(label), &number) || number < 0 || number > max) {
    return absl::InvalidArgumentError(
        absl::StrCat("label ", label, " is not a number from 0 to ", max));
  }
  return number;
}

absl::Status Twice() { return absl::InvalidArgumentError("it appears twice"); }

absl::Status TooMany(absl::string_view what, size_t most) {
  return absl::InvalidArgumentError(absl::StrCat("the page has more than ", most, " ", what));
}

// A rank while it is being read. Three series describe a rail in use.
struct Rank {
  RankReport report;
  std::vector<GivenRail> given;
  std::vector<UsedRail> states;  // by the first of them
  std::vector<UsedRail> peers;   // by the other two, of which the state is not known
};

bool SameRail(const UsedRail& a, const UsedRail& b) {
  return a.rail == b.rail && a.device == b.device && a.transport == b.transport;
}

absl::Status ReadStart(const Sample& sample, Rank& to) {
  RankReport& rank = to.report;
  if (rank.start.has_value()) return Twice();
  const absl::StatusOr<int> world = NumberOf(sample, "world_size", kMaxRank);
  if (!world.ok()) return world.status();
  rank.start = {*world,
                TextOf(sample, "transport"),
                TextOf(sample, "requested"),
                TextOf(sample, "fallback"),
                TextOf(sample, "trouble"),
                TextOf(sample, "pod"),
                TextOf(sample, "unauthenticated")};
  return absl::OkStatus();
}

absl::Status ReadGiven(const Sample& sample, Rank& rank) {
  const absl::StatusOr<int> number = NumberOf(sample, "rail", fabric::kHighestRail);
  const absl::StatusOr<int> mtu = NumberOf(sample, "mtu", kMaxMtu);
  absl::Status status = number.status();
  status.Update(mtu.status());
  if (!status.ok()) return status;
  GivenRail rail = {
      *number, TextOf(sample, "device"),  TextOf(sample, "link_layer"), TextOf(sample, "rate"),
      *mtu,    TextOf(sample, "trouble"), TextOf(sample, "cause")};
  // A usable rail has no cause; an unusable one always has.
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

// Returns the sample's rail in the list; adds it if absent. Fails if there are too many. A rank
// that has split its communicator has a shared-memory entry beside its rails.
absl::StatusOr<UsedRail*> RailIn(std::vector<UsedRail>& rails, const Sample& sample, bool& added) {
  const absl::StatusOr<int> number = NumberOf(sample, "rail", fabric::kHighestRail);
  if (!number.ok()) return number.status();
  UsedRail rail = {*number, TextOf(sample, "device"), TextOf(sample, "transport")};
  const auto found = std::find_if(rails.begin(), rails.end(),
                                  [&rail](const UsedRail& other) { return SameRail(rail, other); });
  added = found == rails.end();
  if (!added) return &*found;
  if (rails.size() == fabric::kMaxRails) return TooMany("rails", fabric::kMaxRails);
  return &rails.emplace_back(std::move(rail));
}

absl::Status ReadUsed(const Sample& sample, Rank& rank) {
  bool added = false;
  const absl::StatusOr<UsedRail*> rail = RailIn(rank.states, sample, added);
  if (!rail.ok()) return rail.status();
  if (sample.value != 0 && sample.value != 1) {
    return absl::InvalidArgumentError("it is not 0 or 1");
  }
  if (!added) return Twice();
  (*rail)->up = sample.value == 1;
  return absl::OkStatus();
}

template <int UsedRail::*field>
absl::Status ReadPeers(const Sample& sample, Rank& rank) {
  bool added = false;
  const absl::StatusOr<UsedRail*> rail = RailIn(rank.peers, sample, added);
  if (!rail.ok()) return rail.status();
  if (!(sample.value >= 0 && sample.value <= kMaxRank)) {
    return absl::InvalidArgumentError(absl::StrCat("it is not a number from 0 to ", kMaxRank));
  }
  (*rail)->*field = static_cast<int>(sample.value);
  return absl::OkStatus();
}

absl::Status ReadDegraded(const Sample& sample, Rank& to) {
  RankReport& rank = to.report;
  if (sample.value != 0 && sample.value != 1) {
    return absl::InvalidArgumentError("it is not 0 or 1");
  }
  if (!rank.degraded.empty()) return Twice();
  if (sample.value == 1) rank.degraded = TextOf(sample, "reason");
  return absl::OkStatus();
}

template <std::optional<double> RankReport::*field>
absl::Status ReadBytes(const Sample& sample, Rank& to) {
  RankReport& rank = to.report;
  if (std::isnan(sample.value) || sample.value < 0) {
    return absl::InvalidArgumentError("it is not a number of bytes");
  }
  if ((rank.*field).has_value()) return Twice();
  rank.*field = sample.value;
  return absl::OkStatus();
}

struct Series {
  absl::string_view name;
  absl::Status (*read)(const Sample& sample, Rank& rank);
};

constexpr std::array<Series, 10> kSeries = {{
    {"railhead_runtime_info", ReadStart},
    {"railhead_rail_info", ReadGiven},
    {"railhead_rail_state", ReadUsed},
    {"railhead_rail_peers", ReadPeers<&UsedRail::peers>},
    {"railhead_rail_lost_peers", ReadPeers<&UsedRail::lost_peers>},
    {"railhead_degraded", ReadDegraded},
    {"railhead_memlock_limit_bytes", ReadBytes<&RankReport::memlock_limit>},
    {"railhead_memlock_wanted_bytes", ReadBytes<&RankReport::memlock_wanted>},
    {"railhead_memlock_least_bytes", ReadBytes<&RankReport::memlock_least>},
    {"railhead_shared_memory_bytes", ReadBytes<&RankReport::shared_memory>},
}};

// By job, rank, process and source. The label `process` distinguishes processes with the same job
// and rank, such as two jobs of one name or a forked child; the label `source` libraries of one
// process: Railhead's own communicators ("") and NCCL's plugin ("nccl").
using Ranks = std::map<std::tuple<std::string, int, std::string, std::string>, Rank>;

const Series* SeriesOf(absl::string_view line) {
  const absl::string_view name = NameOfSample(line);
  const auto* const series = std::find_if(
      kSeries.begin(), kSeries.end(), [name](const Series& entry) { return entry.name == name; });
  return series == kSeries.end() ? nullptr : series;
}

absl::Status ReadSeries(absl::string_view line, const Series& series, Ranks& ranks) {
  const absl::StatusOr<Sample> sample = ParseSample(line);
  if (!sample.ok()) return sample.status();
  const absl::StatusOr<int> number = NumberOf(*sample, "rank", kMaxRank);
  if (!number.ok()) return number.status();
  const std::string job = TextOf(*sample, "job");
  const auto [at, added] =
      ranks.try_emplace({job, *number, TextOf(*sample, "process"), TextOf(*sample, "source")});
  if (added && ranks.size() > kMaxRanks) return TooMany("ranks", kMaxRanks);
  at->second.report.job = job;
  at->second.report.rank = *number;
  return series.read(*sample, at->second);
}

// All that was read of a rank.
RankReport Finish(Rank rank) {
  for (const UsedRail& peers : rank.peers) {
    for (UsedRail& rail : rank.states) {
      if (!SameRail(rail, peers)) continue;
      rail.peers = peers.peers;
      rail.lost_peers = peers.lost_peers;
    }
  }
  std::stable_sort(rank.states.begin(), rank.states.end(),
                   [](const UsedRail& a, const UsedRail& b) { return a.rail < b.rail; });
  std::sort(rank.given.begin(), rank.given.end(),
            [](const GivenRail& a, const GivenRail& b) { return a.rail < b.rail; });
  RankReport report = std::move(rank.report);
  report.given = SharedList(std::move(rank.given));
  report.used = SharedList(std::move(rank.states));
  return report;
}

}  // namespace

bool IsOfInterest(absl::string_view line) { return SeriesOf(line) != nullptr; }

absl::StatusOr<RuntimeReport> ParseRuntimePage(absl::string_view page) {
  if (page.size() > kMaxPageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the page has ", page.size(), " bytes, more than ", kMaxPageBytes));
  }
  Ranks ranks;
  size_t number = 0;
  size_t read = 0;  // bytes
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    ++number;
    const auto error = [&](absl::string_view name, absl::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, " of the page, ", name, ": ", what));
    };
    if (line.size() > kMaxLineBytes) {
      return error("a line", absl::StrCat("is longer than ", kMaxLineBytes, " bytes"));
    }
    const Series* series = SeriesOf(line);
    if (series == nullptr) continue;
    read += line.size() + 1;
    if (read > kMaxKeptBytes) {
      return error(series->name,
                   absl::StrCat("more than ", kMaxKeptBytes, " bytes of series to store"));
    }
    const absl::Status status = ReadSeries(absl::StripSuffix(line, "\r"), *series, ranks);
    if (!status.ok()) return error(series->name, status.message());
  }
  RuntimeReport report;
  for (auto& [key, rank] : ranks) report.ranks.push_back(Finish(std::move(rank)));
  return report;
}

}  // namespace railhead::op::verdict
