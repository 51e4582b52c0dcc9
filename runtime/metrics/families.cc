// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/families.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/printable_text.h"
#include "runtime/base/wire.h"

namespace railhead::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Only Merge adds these.
constexpr char kProcessLabel[] = "process";
constexpr char kConflicts[] = "railhead_metrics_conflicts";

constexpr size_t kLongestName = 200;
constexpr size_t kLongestText = 64 << 10;  // of a help text, or of a label's value

// On the wire.
enum class Kind : uint8_t { kCounter = 0, kGauge = 1, kHistogram = 2 };

Kind KindOf(MetricType type) {
  if (type == MetricType::Counter) return Kind::kCounter;
  return type == MetricType::Histogram ? Kind::kHistogram : Kind::kGauge;
}

MetricType TypeOf(Kind kind) {
  if (kind == Kind::kCounter) return MetricType::Counter;
  return kind == Kind::kHistogram ? MetricType::Histogram : MetricType::Gauge;
}

void WriteDouble(double value, WireWriter& writer) { writer.U64(std::bit_cast<uint64_t>(value)); }

double ReadDouble(WireReader& reader) { return std::bit_cast<double>(reader.U64()); }

void WriteSeries(const ClientMetric& series, Kind kind, WireWriter& writer) {
  writer.U8(static_cast<uint8_t>(series.label.size()));
  for (const ClientMetric::Label& label : series.label) {
    writer.String(label.name);
    writer.String(label.value);
  }
  if (kind == Kind::kCounter) WriteDouble(series.counter.value, writer);
  if (kind == Kind::kGauge) WriteDouble(series.gauge.value, writer);
  if (kind != Kind::kHistogram) return;
  writer.U64(series.histogram.sample_count);
  WriteDouble(series.histogram.sample_sum, writer);
  writer.U8(static_cast<uint8_t>(series.histogram.bucket.size()));
  for (const ClientMetric::Bucket& bucket : series.histogram.bucket) {
    writer.U64(bucket.cumulative_count);
    WriteDouble(bucket.upper_bound, writer);
  }
}

// As Prometheus allows it for metrics and labels, without colons.
bool IsName(const std::string& name) {
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return false;
  return name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
         std::string::npos;
}

bool ReadSeries(Kind kind, WireReader& reader, ClientMetric& series) {
  const uint8_t labels = reader.U8();
  for (int i = 0; i < labels && reader.ok(); ++i) {
    ClientMetric::Label& label = series.label.emplace_back();
    label.name = reader.String(kLongestName);
    label.value = reader.String(kLongestText);
    if (!IsName(label.name) || label.name == kProcessLabel || !IsPrintableText(label.value)) {
      return false;
    }
  }
  if (kind == Kind::kCounter) series.counter.value = ReadDouble(reader);
  if (kind == Kind::kGauge) series.gauge.value = ReadDouble(reader);
  if (kind == Kind::kHistogram) {
    series.histogram.sample_count = reader.U64();
    series.histogram.sample_sum = ReadDouble(reader);
    const uint8_t buckets = reader.U8();
    for (int i = 0; i < buckets && reader.ok(); ++i) {
      ClientMetric::Bucket& bucket = series.histogram.bucket.emplace_back();
      bucket.cumulative_count = reader.U64();
      bucket.upper_bound = ReadDouble(reader);
    }
  }
  return reader.ok() && series.label.size() >= 2 && series.label[0].name == "job" &&
         series.label[1].name == "rank";
}

struct RankOfJob {
  std::string job;
  std::string rank;
  std::string source;

  auto operator<=>(const RankOfJob&) const = default;
};

RankOfJob RankOf(const ClientMetric& series) {
  const bool has_source = series.label.size() > 2 && series.label[2].name == kSourceLabel;
  return {series.label[0].value, series.label[1].value, has_source ? series.label[2].value : ""};
}

// Containers of a pod may count their processes from 1 each.
void NameApart(std::vector<Page>& pages) {
  std::set<std::string> names;
  for (Page& page : pages) {
    std::string name = page.process;
    for (int i = 2; !names.insert(name).second; ++i) name = absl::StrCat(page.process, ".", i);
    page.process = std::move(name);
  }
}

// The pages that have series of each rank.
std::map<RankOfJob, std::vector<size_t>> ClaimsOf(const std::vector<Page>& pages) {
  std::map<RankOfJob, std::vector<size_t>> claims;
  for (size_t page = 0; page < pages.size(); ++page) {
    for (const MetricFamily& family : pages[page].families) {
      for (const ClientMetric& series : family.metric) {
        std::vector<size_t>& of_rank = claims[RankOf(series)];
        if (of_rank.empty() || of_rank.back() != page) of_rank.push_back(page);
      }
    }
  }
  return claims;
}

void AddConflicts(const std::map<RankOfJob, std::vector<size_t>>& claims,
                  const std::vector<Page>& pages, MergedPage& merged) {
  MetricFamily conflicts = {
      kConflicts,
      "Processes of this pod that are all this rank of this job, if there are several: their "
      "series have the label process. Give each process its own RANK, or each job its own "
      "RAILHEAD_JOB.",
      MetricType::Gauge,
      {}};
  for (const auto& [rank, of_rank] : claims) {
    if (of_rank.size() < 2) continue;
    ClientMetric& series = conflicts.metric.emplace_back();
    series.label = {{"job", rank.job}, {"rank", rank.rank}};
    if (!rank.source.empty()) series.label.push_back({kSourceLabel, rank.source});
    series.gauge.value = static_cast<double>(of_rank.size());
    const std::string both = absl::StrCat("rank ", rank.rank, " of job '", rank.job, "'");
    merged.warnings.push_back(
        {both,
         absl::StrCat("processes ", pages[of_rank[0]].process, " and ", pages[of_rank[1]].process,
                      " of this pod are both ", both,
                      " on the metrics page, so their series have the label process; give each "
                      "process its own RANK, or each job its own RAILHEAD_JOB")});
  }
  if (!conflicts.metric.empty()) merged.families.push_back(std::move(conflicts));
}

}  // namespace

std::string Encode(const Families& families) {
  WireWriter writer;
  writer.U32(static_cast<uint32_t>(families.size()));
  for (const MetricFamily& family : families) {
    const Kind kind = KindOf(family.type);
    writer.String(family.name);
    writer.String(family.help);
    writer.U8(static_cast<uint8_t>(kind));
    writer.U32(static_cast<uint32_t>(family.metric.size()));
    for (const ClientMetric& series : family.metric) WriteSeries(series, kind, writer);
  }
  return writer.Take();
}

absl::StatusOr<Families> ParseFamilies(absl::string_view bytes) {
  absl::Status malformed = absl::InvalidArgumentError("malformed metrics of another process");
  WireReader reader(bytes);
  Families families;
  const uint32_t count = reader.U32();
  for (uint32_t i = 0; i < count; ++i) {
    MetricFamily& family = families.emplace_back();
    family.name = reader.String(kLongestName);
    family.help = reader.String(kLongestText);
    const uint8_t kind = reader.U8();
    const uint32_t series = reader.U32();
    if (!reader.ok() || !IsName(family.name) || family.name == kConflicts ||
        !IsPrintableText(family.help) || kind > static_cast<uint8_t>(Kind::kHistogram)) {
      return malformed;
    }
    family.type = TypeOf(Kind{kind});
    for (uint32_t j = 0; j < series; ++j) {
      if (!ReadSeries(Kind{kind}, reader, family.metric.emplace_back())) return malformed;
    }
  }
  if (!reader.Complete()) return malformed;
  return families;
}

MergedPage Merge(std::vector<Page> pages) {
  NameApart(pages);
  MergedPage merged;
  const std::map<RankOfJob, std::vector<size_t>> claims = ClaimsOf(pages);
  std::unordered_map<std::string, size_t> place;  // of families, by name
  for (Page& page : pages) {
    for (MetricFamily& family : page.families) {
      const auto [at, is_new] = place.try_emplace(family.name, merged.families.size());
      if (is_new) merged.families.push_back({family.name, std::move(family.help), family.type, {}});
      MetricFamily& into = merged.families[at->second];
      if (into.type != family.type) {
        merged.warnings.push_back(
            {family.name,
             absl::StrCat("the metrics page lacks ", family.name, " of process ", page.process,
                          ", whose librailhead is another version than that of another process; "
                          "use one version in the pod")});
        continue;
      }
      for (ClientMetric& series : family.metric) {
        if (claims.at(RankOf(series)).size() > 1) {
          series.label.insert(series.label.begin() + 2, {kProcessLabel, page.process});
        }
        into.metric.push_back(std::move(series));
      }
    }
  }
  AddConflicts(claims, pages, merged);
  return merged;
}

}  // namespace railhead::metrics
