// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/families.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "runtime/base/wire.h"

namespace railhead::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

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
    if (!IsName(label.name)) return false;
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
    if (!reader.ok() || !IsName(family.name) || kind > static_cast<uint8_t>(Kind::kHistogram)) {
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

Families Merge(std::vector<Families> pages) {
  std::map<std::pair<std::string, std::string>, size_t> page_of_rank;  // by job and rank
  std::unordered_map<std::string, size_t> place;                       // of families, by name
  Families merged;
  for (size_t page = 0; page < pages.size(); ++page) {
    for (MetricFamily& family : pages[page]) {
      const auto [at, is_new] = place.try_emplace(family.name, merged.size());
      if (is_new) merged.push_back({family.name, std::move(family.help), family.type, {}});
      MetricFamily& into = merged[at->second];
      if (into.type != family.type) continue;  // of another version of this library
      for (ClientMetric& series : family.metric) {
        const auto first =
            page_of_rank.try_emplace({series.label[0].value, series.label[1].value}, page);
        if (first.first->second == page) into.metric.push_back(std::move(series));
      }
    }
  }
  return merged;
}

}  // namespace railhead::metrics
