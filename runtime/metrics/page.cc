// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/page.h"

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_type.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// The page under construction: every series begins with the labels of the rank.
class Builder {
 public:
  explicit Builder(Labels common) : common_(std::move(common)) {}

  void Family(std::string name, std::string help, MetricType type) {
    families_.push_back({std::move(name), std::move(help), type, {}});
  }
  void Counter(const Labels& labels, double value) { Add(labels).counter.value = value; }
  void Gauge(const Labels& labels, double value) { Add(labels).gauge.value = value; }
  ClientMetric::Histogram& Histogram(const Labels& labels) { return Add(labels).histogram; }
  std::vector<MetricFamily> Take() { return std::move(families_); }

 private:
  ClientMetric& Add(const Labels& labels) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = common_;
    metric.label.insert(metric.label.end(), labels.begin(), labels.end());
    return metric;
  }

  Labels common_;
  std::vector<MetricFamily> families_;
};

Labels RailLabels(const rails::RailName& name) {
  return {{"rail", absl::StrCat(name.rail)},
          {"device", name.device},
          {"port", absl::StrCat(name.port)},
          {"transport", name.transport}};
}

void AddRails(const Snapshot& snapshot, Builder& builder) {
  struct Entry {
    const char* name;
    const char* help;
    MetricType type;
    double (*value)(const rails::RailTotals&);
  };
  constexpr std::array<Entry, 8> kEntries = {{
      {"railhead_rail_transmit_bytes_total", "Payload bytes sent over this rail.",
       MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.transmit_bytes); }},
      {"railhead_rail_receive_bytes_total", "Payload bytes received over this rail.",
       MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.receive_bytes); }},
      {"railhead_rail_state", "1 while the rail works, 0 while it is lost.", MetricType::Gauge,
       [](const rails::RailTotals& r) { return r.up ? 1.0 : 0.0; }},
      {"railhead_rail_weight",
       "Measured goodput of this rail, that of the fastest being 1; 0 while it is lost.",
       MetricType::Gauge, [](const rails::RailTotals& r) { return r.up ? r.weight : 0.0; }},
      {"railhead_rail_failovers_total",
       "How often this rail was lost and its load moved to other rails.", MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.failovers); }},
      {"railhead_rail_returns_total", "How often this rail came back after it was lost.",
       MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.returns); }},
      {"railhead_rail_retransmits_total",
       "Retransmissions on this rail, where its transport can tell.", MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.retransmits); }},
      {"railhead_rail_rejected_connections_total",
       "Connections to this rail's sockets that were turned away.", MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.strangers); }},
  }};
  for (const Entry& entry : kEntries) {
    builder.Family(entry.name, entry.help, entry.type);
    for (const rails::RailTotals& rail : snapshot.rails) {
      const double value = entry.value(rail);
      if (entry.type == MetricType::Counter) {
        builder.Counter(RailLabels(rail.name), value);
      } else {
        builder.Gauge(RailLabels(rail.name), value);
      }
    }
  }
}

void FillHistogram(const CollectiveCounts& counts, ClientMetric::Histogram& histogram) {
  histogram.sample_sum = counts.seconds;
  uint64_t cumulative = 0;
  for (size_t b = 0; b < counts.buckets.size(); ++b) {
    cumulative += counts.buckets[b];
    histogram.bucket.push_back({cumulative, b < kDurationBounds.size()
                                                ? kDurationBounds[b]
                                                : std::numeric_limits<double>::infinity()});
  }
  histogram.sample_count = cumulative;
}

void AddCollectives(const Snapshot& snapshot, Builder& builder) {
  const auto each = [&](auto add) {
    for (const KindCounts& kind : snapshot.collectives) {
      for (size_t i = 0; i < kind.classes.size(); ++i) {
        const Labels labels = {{"collective", Name(kind.collective)},
                               {"algorithm", Name(kind.algorithm)},
                               {"size_class", kSizeClasses[i]}};
        add(labels, kind.classes[i]);
      }
    }
  };
  builder.Family("railhead_collective_operations_total", "Finished collectives.",
                 MetricType::Counter);
  each([&](const Labels& labels, const CollectiveCounts& counts) {
    builder.Counter(labels, static_cast<double>(counts.operations));
  });
  builder.Family("railhead_collective_bytes_total",
                 "Bytes of data of finished collectives: of the larger of a rank's two buffers.",
                 MetricType::Counter);
  each([&](const Labels& labels, const CollectiveCounts& counts) {
    builder.Counter(labels, static_cast<double>(counts.bytes));
  });
  builder.Family("railhead_collective_duration_seconds", "How long collectives took on this rank.",
                 MetricType::Histogram);
  each([&](const Labels& labels, const CollectiveCounts& counts) {
    FillHistogram(counts, builder.Histogram(labels));
  });
}

class Page final : public prometheus::Collectable {
 public:
  explicit Page(std::function<Snapshot()> read) : read_(std::move(read)) {}
  std::vector<MetricFamily> Collect() const override { return ToFamilies(read_()); }

 private:
  std::function<Snapshot()> read_;
};

class ExposerServer final : public Server {
 public:
  ExposerServer(const std::string& address, std::function<Snapshot()> read)
      : page_(std::make_shared<Page>(std::move(read))), exposer_(address) {
    exposer_.RegisterCollectable(page_);
  }
  int port() const override {
    const std::vector<int> ports = exposer_.GetListeningPorts();
    return ports.empty() ? 0 : ports.front();
  }

 private:
  std::shared_ptr<Page> page_;
  prometheus::Exposer exposer_;  // ends its threads before the page goes
};

}  // namespace

std::vector<MetricFamily> ToFamilies(const Snapshot& snapshot) {
  Builder builder({{"job", snapshot.job}, {"rank", absl::StrCat(snapshot.rank)}});
  AddRails(snapshot, builder);
  AddCollectives(snapshot, builder);
  builder.Family(
      "railhead_degraded",
      "1 while the job runs with less than it asked for; the reason says what and where.",
      MetricType::Gauge);
  builder.Gauge({{"reason", snapshot.degraded_reason}},
                snapshot.degraded_reason.empty() ? 0.0 : 1.0);
  builder.Family("railhead_bootstrap_rejected_connections_total",
                 "Connections that rank 0's rendezvous turned away.", MetricType::Counter);
  builder.Counter({}, static_cast<double>(snapshot.rejected_connections));
  return builder.Take();
}

absl::StatusOr<std::unique_ptr<Server>> Serve(int port, const std::function<Snapshot()>& read) {
  // "+" listens on IPv6 and IPv4; a kernel without IPv6 needs the plain form.
  std::string error;
  for (const char* prefix : {"+", ""}) {
    try {
      return std::make_unique<ExposerServer>(absl::StrCat(prefix, port), read);
    } catch (const std::exception& exception) {
      error = exception.what();
    }
  }
  return absl::UnavailableError(absl::StrCat("cannot serve metrics at RAILHEAD_METRICS_PORT ", port,
                                             ": ", error, "; another process may use the port"));
}

}  // namespace railhead::metrics
