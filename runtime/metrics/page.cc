// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/page.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable_text.h"
#include "fabric/port_counters.h"
#include "runtime/metrics/page_server.h"

namespace railhead::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

using Ranks = std::vector<Snapshot>;

// The page under construction: every series begins with the labels of its rank, and of its source
// if it has one.
class Builder {
 public:
  // One that gets no series is left out.
  void Family(std::string name, std::string help, MetricType type) {
    if (!families_.empty() && families_.back().metric.empty()) families_.pop_back();
    families_.push_back({std::move(name), std::move(help), type, {}});
  }
  void Counter(const Snapshot& rank, const Labels& labels, double value) {
    Add(rank, labels).counter.value = value;
  }
  void Gauge(const Snapshot& rank, const Labels& labels, double value) {
    Add(rank, labels).gauge.value = value;
  }
  ClientMetric::Histogram& Histogram(const Snapshot& rank, const Labels& labels) {
    return Add(rank, labels).histogram;
  }
  Families Take() { return std::move(families_); }

 private:
  ClientMetric& Add(const Snapshot& rank, const Labels& labels) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = {{"job", rank.job}, {"rank", absl::StrCat(rank.rank)}};
    if (!rank.source.empty()) metric.label.push_back({kSourceLabel, rank.source});
    metric.label.insert(metric.label.end(), labels.begin(), labels.end());
    // Prometheus refuses a page with bytes that are not UTF-8.
    for (ClientMetric::Label& label : metric.label) label.value = PrintableText(label.value);
    return metric;
  }

  Families families_;
};

Labels RailLabels(const rails::RailName& name) {
  return {{"rail", absl::StrCat(name.rail)},
          {"device", name.device},
          {"port", absl::StrCat(name.port)},
          {"transport", name.transport}};
}

void AddGivenRails(const Snapshot& rank, Builder& builder) {
  for (const GivenRail& rail : rank.start->rails) {
    Labels labels = RailLabels(rail.name);
    labels.insert(labels.end(), {{"link_layer", rail.link_layer},
                                 {"rate", rail.rate},
                                 {"mtu", absl::StrCat(rail.mtu)},
                                 {"cause", rail.cause},
                                 {"trouble", rail.trouble}});
    builder.Gauge(rank, labels, 1);
  }
}

void AddStart(const Ranks& ranks, Builder& builder) {
  const auto each = [&ranks](auto add) {
    for (const Snapshot& rank : ranks) {
      if (rank.start.has_value()) add(rank, *rank.start);
    }
  };
  builder.Family("railhead_runtime_info",
                 "Always 1: the rank's requested and actual transport at its start. trouble: why "
                 "it had no RDMA rails to check; pod: the pod of this page; unauthenticated: why "
                 "any process that knows the job's name can join it.",
                 MetricType::Gauge);
  each([&](const Snapshot& rank, const Start& start) {
    builder.Gauge(rank,
                  {{"world_size", absl::StrCat(start.world_size)},
                   {"transport", start.transport},
                   {"requested", start.requested},
                   {"fallback", start.fallback},
                   {"trouble", start.trouble},
                   {"pod", start.pod},
                   {"unauthenticated", start.unauthenticated}},
                  1);
  });
  builder.Family("railhead_rail_info",
                 "Always 1: an RDMA rail that was given to the rank, at the rank's start. cause: "
                 "the pre-flight check that found it unusable.",
                 MetricType::Gauge);
  each([&](const Snapshot& rank, const Start&) { AddGivenRails(rank, builder); });
  builder.Family("railhead_memlock_limit_bytes", "Memory that the rank's process may lock.",
                 MetricType::Gauge);
  each([&](const Snapshot& rank, const Start& start) {
    builder.Gauge(rank, {},
                  start.memlock.has_value() ? static_cast<double>(*start.memlock)
                                            : std::numeric_limits<double>::infinity());
  });
  builder.Family("railhead_memlock_wanted_bytes",
                 "Memory that the rank's RDMA links would lock without a limit.",
                 MetricType::Gauge);
  each([&](const Snapshot& rank, const Start& start) {
    builder.Gauge(rank, {}, static_cast<double>(start.registers));
  });
  builder.Family("railhead_memlock_least_bytes",
                 "Minimum of locked memory with which all RDMA links of the rank work.",
                 MetricType::Gauge);
  each([&](const Snapshot& rank, const Start& start) {
    builder.Gauge(rank, {}, static_cast<double>(start.least_bytes));
  });
  builder.Family("railhead_shared_memory_bytes", "Size of /dev/shm in the rank's container.",
                 MetricType::Gauge);
  each([&](const Snapshot& rank, const Start& start) {
    if (!start.shared_memory.has_value()) return;
    builder.Gauge(rank, {}, static_cast<double>(*start.shared_memory));
  });
}

void AddRails(const Ranks& ranks, Builder& builder) {
  struct Entry {
    const char* name;
    const char* help;
    MetricType type;
    double (*value)(const rails::RailTotals&);
  };
  constexpr std::array<Entry, 10> kEntries = {{
      {"railhead_rail_transmit_bytes_total", "Payload bytes sent over this rail.",
       MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.transmit_bytes); }},
      {"railhead_rail_receive_bytes_total", "Payload bytes received over this rail.",
       MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.receive_bytes); }},
      {"railhead_rail_state", "1 while the rail works, 0 while it is lost.", MetricType::Gauge,
       [](const rails::RailTotals& r) { return r.up ? 1.0 : 0.0; }},
      {"railhead_rail_peers",
       "Links of this rail to other ranks: one to each rank for the collectives of a communicator, "
       "and one for its transfers.",
       MetricType::Gauge, [](const rails::RailTotals& r) { return static_cast<double>(r.peers); }},
      {"railhead_rail_lost_peers",
       "Links of this rail that do not reach their rank now: all if its own NIC or cable failed, "
       "those to one rank if that rank's failed.",
       MetricType::Gauge,
       [](const rails::RailTotals& r) { return static_cast<double>(r.lost_peers); }},
      {"railhead_rail_weight",
       "Measured goodput of this rail relative to the fastest (1); 0 while it is lost.",
       MetricType::Gauge, [](const rails::RailTotals& r) { return r.up ? r.weight : 0.0; }},
      {"railhead_rail_failovers_total",
       "Times that this rail was lost and its load moved to other rails.", MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.failovers); }},
      {"railhead_rail_returns_total", "Times that this rail recovered after it was lost.",
       MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.returns); }},
      {"railhead_rail_retransmits_total",
       "Retransmissions on this rail, if its transport reports them.", MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.retransmits); }},
      {"railhead_rail_rejected_connections_total", "Rejected connections to this rail's sockets.",
       MetricType::Counter,
       [](const rails::RailTotals& r) { return static_cast<double>(r.strangers); }},
  }};
  for (const Entry& entry : kEntries) {
    builder.Family(entry.name, entry.help, entry.type);
    for (const Snapshot& rank : ranks) {
      for (const rails::RailTotals& rail : rank.rails) {
        const double value = entry.value(rail);
        if (entry.type == MetricType::Counter) {
          builder.Counter(rank, RailLabels(rail.name), value);
        } else {
          builder.Gauge(rank, RailLabels(rail.name), value);
        }
      }
    }
  }
}

// Adds the counters of rails' ports, except bytes, which the rails count themselves.
void AddPorts(const Ranks& ranks, Builder& builder) {
  for (const fabric::PortCounterName& entry : fabric::PortCounterNames()) {
    if (entry.counter == &fabric::PortCounters::transmit_bytes ||
        entry.counter == &fabric::PortCounters::receive_bytes) {
      continue;
    }
    builder.Family(absl::StrCat("railhead_rail_", entry.name, "_total"),
                   absl::StrCat(entry.help,
                                " Counted by the rail's port for all its users, not only this "
                                "job."),
                   MetricType::Counter);
    for (const Snapshot& rank : ranks) {
      for (const PortSnapshot& port : rank.ports) {
        const std::optional<uint64_t> value = port.counters.*entry.counter;
        if (!value.has_value()) continue;
        builder.Counter(rank, RailLabels(port.name), static_cast<double>(*value));
      }
    }
  }
}

void AddGpuDirect(const Ranks& ranks, Builder& builder) {
  builder.Family("railhead_gpudirect",
                 "Always 1: how the rail's NIC reads the registered GPU memory, the slowest way "
                 "in use: dmabuf, peermem, or none if it is copied through the host.",
                 MetricType::Gauge);
  for (const Snapshot& rank : ranks) {
    for (const GpuDirectSnapshot& rail : rank.gpu_direct) {
      Labels labels = RailLabels(rail.name);
      labels.push_back({"way", std::string(fabric::ToString(rail.way))});
      builder.Gauge(rank, labels, 1);
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

void AddCollectives(const Ranks& ranks, Builder& builder) {
  const auto each = [&](auto add) {
    for (const Snapshot& rank : ranks) {
      for (const KindCounts& kind : rank.collectives) {
        for (size_t i = 0; i < kind.classes.size(); ++i) {
          // A histogram is two dozen series, and most sizes do not occur.
          if (kind.classes[i].operations == 0) continue;
          Labels labels = {{"collective", kind.collective},
                           {"algorithm", kind.algorithm},
                           {"size_class", kSizeClasses[i]}};
          if (!kind.comm.empty()) labels.push_back({"comm", kind.comm});
          add(rank, labels, kind.classes[i]);
        }
      }
    }
  };
  builder.Family("railhead_collective_operations_total", "Finished collectives.",
                 MetricType::Counter);
  each([&](const Snapshot& rank, const Labels& labels, const CollectiveCounts& counts) {
    builder.Counter(rank, labels, static_cast<double>(counts.operations));
  });
  builder.Family("railhead_collective_bytes_total",
                 "Bytes of finished collectives: the larger of a rank's two buffers.",
                 MetricType::Counter);
  each([&](const Snapshot& rank, const Labels& labels, const CollectiveCounts& counts) {
    builder.Counter(rank, labels, static_cast<double>(counts.bytes));
  });
  builder.Family("railhead_collective_duration_seconds", "Duration of collectives on this rank.",
                 MetricType::Histogram);
  each([&](const Snapshot& rank, const Labels& labels, const CollectiveCounts& counts) {
    FillHistogram(counts, builder.Histogram(rank, labels));
  });
}

// Adds what the profiler of another library has seen.
void AddProfiler(const Ranks& ranks, Builder& builder) {
  const auto each = [&ranks](auto add) {
    for (const Snapshot& rank : ranks) {
      if (!rank.profiler.events.empty()) add(rank, rank.profiler);
    }
  };
  builder.Family("railhead_nccl_untimed_operations_total",
                 "Finished collectives of NCCL that did not use this rank's network: their "
                 "duration is unknown, and railhead_collective_* do not count them.",
                 MetricType::Counter);
  each([&](const Snapshot& rank, const ProfilerSnapshot& profiler) {
    for (const UntimedOperations& untimed : profiler.untimed) {
      builder.Counter(rank, {{"collective", untimed.collective}},
                      static_cast<double>(untimed.operations));
    }
  });
  builder.Family("railhead_nccl_wait_seconds_total",
                 "Time that transfers of NCCL's collectives waited, summed over channels and "
                 "peers. cause of sends: gpu (this rank has no data yet), peer (the receiver is "
                 "not ready), network (the data is on its way); of receives: peer (no data has "
                 "come, from the peer or the network), flush, gpu (this rank has not taken it).",
                 MetricType::Counter);
  each([&](const Snapshot& rank, const ProfilerSnapshot& profiler) {
    for (const WaitTime& wait : profiler.waits) {
      builder.Counter(rank,
                      {{"collective", wait.collective},
                       {"size_class", kSizeClasses[wait.size_class]},
                       {"direction", wait.direction},
                       {"cause", wait.cause}},
                      wait.seconds);
    }
  });
  builder.Family("railhead_nccl_silent_peers",
                 "Ranks that have sent nothing for seconds while this rank of NCCL waits for "
                 "their data.",
                 MetricType::Gauge);
  each([&](const Snapshot& rank, const ProfilerSnapshot& profiler) {
    builder.Gauge(rank, {}, static_cast<double>(profiler.silent_peers));
  });
  builder.Family("railhead_nccl_silent_peer_seconds",
                 "Time for which the rank peer has sent nothing while this rank waits for its "
                 "data; the first 8 such ranks. The cause is a rank that others wait for and that "
                 "waits for no other.",
                 MetricType::Gauge);
  each([&](const Snapshot& rank, const ProfilerSnapshot& profiler) {
    for (const SilentPeer& silent : profiler.silent) {
      Labels labels = {{"peer", absl::StrCat(silent.peer)}};
      if (!silent.comm.empty()) labels.push_back({"comm", silent.comm});
      builder.Gauge(rank, labels, silent.seconds);
    }
  });
  builder.Family("railhead_nccl_profiler_events_total",
                 "Events of NCCL's profiler interface; change: start or stop.",
                 MetricType::Counter);
  each([&](const Snapshot& rank, const ProfilerSnapshot& profiler) {
    for (const ProfilerEvents& events : profiler.events) {
      builder.Counter(rank, {{"event", events.event}, {"change", "start"}},
                      static_cast<double>(events.started));
      builder.Counter(rank, {{"event", events.event}, {"change", "stop"}},
                      static_cast<double>(events.stopped));
    }
  });
  builder.Family("railhead_nccl_profiler_dropped_events_total",
                 "Events of NCCL's profiler interface that were not counted, because too many "
                 "were open.",
                 MetricType::Counter);
  each([&](const Snapshot& rank, const ProfilerSnapshot& profiler) {
    builder.Counter(rank, {}, static_cast<double>(profiler.dropped));
  });
}

}  // namespace

Families ToFamilies(const Ranks& ranks) {
  Builder builder;
  AddStart(ranks, builder);
  AddRails(ranks, builder);
  AddPorts(ranks, builder);
  AddGpuDirect(ranks, builder);
  AddCollectives(ranks, builder);
  AddProfiler(ranks, builder);
  builder.Family(
      "railhead_degraded",
      "1 while the job runs with less than it requested. reason: what is missing, and where.",
      MetricType::Gauge);
  for (const Snapshot& rank : ranks) {
    builder.Gauge(rank, {{"reason", rank.degraded_reason}},
                  rank.degraded_reason.empty() ? 0.0 : 1.0);
  }
  builder.Family("railhead_bootstrap_rejected_connections_total",
                 "Connections rejected by rank 0's rendezvous.", MetricType::Counter);
  for (const Snapshot& rank : ranks) {
    builder.Counter(rank, {}, static_cast<double>(rank.rejected_connections));
  }
  return builder.Take();
}

absl::StatusOr<std::unique_ptr<Server>> Serve(int port, const std::function<Families()>& read) {
  absl::StatusOr<std::unique_ptr<PageServer>> server =
      PageServer::Start(port, [read] { return prometheus::TextSerializer().Serialize(read()); });
  if (server.ok()) return *std::move(server);
  return absl::UnavailableError(absl::StrCat("cannot serve metrics at RAILHEAD_METRICS_PORT ", port,
                                             ": ", server.status().message(),
                                             "; another process may use the port"));
}

}  // namespace railhead::metrics
