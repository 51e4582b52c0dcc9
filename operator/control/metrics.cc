// SPDX-License-Identifier: Apache-2.0
#include "operator/control/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace railhead::op {
namespace {

constexpr size_t kMostVerdictSeries = 1000;

const char* ResultLabel(Outcome outcome) {
  switch (outcome) {
    case Outcome::kIgnored:
      return "ignored";
    case Outcome::kUnchanged:
      return "unchanged";
    case Outcome::kMutated:
      return "mutated";
    case Outcome::kNotUnderstood:
      return "not_understood";
  }
  return "not_understood";
}

}  // namespace

struct Metrics::Series {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& admissions =
      prometheus::BuildCounter()
          .Name("railhead_admission_requests_total")
          .Help("Admission reviews answered, by kind of object and result.")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& durations =
      prometheus::BuildHistogram()
          .Name("railhead_admission_duration_seconds")
          .Help("Time from a parsed admission review to its answer.")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& checks =
      prometheus::BuildCounter()
          .Name("railhead_certificate_checks_total")
          .Help("Checks of the webhook's certificates and caBundle.")
          .Register(registry);
  prometheus::Gauge& trusted =
      prometheus::BuildGauge()
          .Name("railhead_webhook_trusted")
          .Help("1 if the API server accepted the served certificate at the last check.")
          .Register(registry)
          .Add({});
  prometheus::Family<prometheus::Gauge>& expiry =
      prometheus::BuildGauge()
          .Name("railhead_certificate_expiry_timestamp_seconds")
          .Help("Expiry of the certificate, in seconds since 1970; 0 if there is none yet.")
          .Register(registry);
  prometheus::Gauge& authority_expiry = expiry.Add({{"certificate", "authority"}});
  prometheus::Gauge& serving_expiry = expiry.Add({{"certificate", "serving"}});
  prometheus::Family<prometheus::Gauge>& cache_synced =
      prometheus::BuildGauge()
          .Name("railhead_cache_synced")
          .Help("1 if all objects of the resource have been read since the operator started.")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& cache_age =
      prometheus::BuildGauge()
          .Name("railhead_cache_age_seconds")
          .Help(
              "Time since the API server last sent an event or bookmark of the resource (once a "
              "minute).")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& cache_objects =
      prometheus::BuildGauge()
          .Name("railhead_cache_objects")
          .Help("Objects of the resource that the operator keeps in memory.")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& profiles =
      prometheus::BuildGauge()
          .Name("railhead_profiles")
          .Help(
              "RailProfiles in the cluster: refused ones are invalid; conflicting ones are "
              "accepted but have the priority of another one.")
          .Register(registry);
  prometheus::Gauge& leads = prometheus::BuildGauge()
                                 .Name("railhead_leader")
                                 .Help("1 if this replica is the leader, which writes.")
                                 .Register(registry)
                                 .Add({});
  prometheus::Family<prometheus::Counter>& pages =
      prometheus::BuildCounter()
          .Name("railhead_verdict_pages_total")
          .Help("Scrapes of the metrics of pods with rdma/*, by result.")
          .Register(registry);
  prometheus::Gauge& left_out =
      prometheus::BuildGauge()
          .Name("railhead_verdict_series_left_out")
          .Help("Series of railhead_verdict_pods that are left out because there are too many.")
          .Register(registry)
          .Add({});
  prometheus::Family<prometheus::Gauge>& verdict =
      prometheus::BuildGauge()
          .Name("railhead_verdict_pods")
          .Help(
              "Pods of a job with a problem, by the reason of their Events, and by rail and node "
              "if the problem is one of a rail.")
          .Register(registry);

  prometheus::Family<prometheus::Gauge>& gangs =
      prometheus::BuildGauge()
          .Name("railhead_gangs")
          .Help(
              "Gangs, by the leader's view: incomplete (cannot be placed as they are), waiting "
              "(no room), running (all pods assigned to nodes).")
          .Register(registry);
  prometheus::Gauge& gang_wait =
      prometheus::BuildGauge()
          .Name("railhead_gang_longest_wait_seconds")
          .Help("Age of the oldest gang that waits for room; 0 if none waits.")
          .Register(registry)
          .Add({});
  prometheus::Family<prometheus::Gauge>& oldest_gang =
      prometheus::BuildGauge()
          .Name("railhead_gang_oldest_waiting_seconds")
          .Help("Age of the oldest gang that waits for room, with its name; absent if none waits.")
          .Register(registry);
  prometheus::Counter& gangs_placed =
      prometheus::BuildCounter()
          .Name("railhead_gang_placements_total")
          .Help("Gangs, or recreated parts of gangs, that this replica assigned to nodes.")
          .Register(registry)
          .Add({});
  prometheus::Counter& pods_replanned =
      prometheus::BuildCounter()
          .Name("railhead_gang_replanned_pods_total")
          .Help("Pods evicted because the scheduler found no room on their assigned nodes.")
          .Register(registry)
          .Add({});

  std::mutex verdict_mutex;  // guards all below
  PageCounts pages_told;
  std::map<VerdictSeries, prometheus::Gauge*> verdict_gauges;
  prometheus::Gauge* oldest = nullptr;
};

Metrics::Metrics() : series_(std::make_unique<Series>()) {}
Metrics::~Metrics() = default;

void Metrics::CountAdmission(absl::string_view kind, Outcome outcome, absl::Duration duration) {
  const std::string kind_label(kind);
  series_->admissions.Add({{"kind", kind_label}, {"result", ResultLabel(outcome)}}).Increment();
  series_->durations
      .Add({{"kind", kind_label}},
           prometheus::Histogram::BucketBoundaries{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                                   0.01, 0.05, 0.25, 1})
      .Observe(absl::ToDoubleSeconds(duration));
}

void Metrics::CountRefusedReview() {
  series_->admissions.Add({{"kind", "other"}, {"result", "refused"}}).Increment();
}

void Metrics::CountCertificateCheck(bool ok) {
  series_->checks.Add({{"result", ok ? "ok" : "error"}}).Increment();
}

void Metrics::SetTrusted(bool trusted) { series_->trusted.Set(trusted ? 1 : 0); }

void Metrics::SetCertificateExpiry(absl::Time authority, absl::Time serving) {
  series_->authority_expiry.Set(static_cast<double>(absl::ToUnixSeconds(authority)));
  series_->serving_expiry.Set(static_cast<double>(absl::ToUnixSeconds(serving)));
}

void Metrics::SetCache(const kube::InformerState& cache) {
  const prometheus::Labels labels = {{"resource", cache.resource}};
  series_->cache_synced.Add(labels).Set(cache.synced ? 1 : 0);
  series_->cache_age.Add(labels).Set(absl::ToDoubleSeconds(cache.age));
  series_->cache_objects.Add(labels).Set(static_cast<double>(cache.objects));
}

void Metrics::SetProfiles(size_t accepted, size_t refused, size_t conflicting) {
  series_->profiles.Add({{"state", "accepted"}}).Set(static_cast<double>(accepted));
  series_->profiles.Add({{"state", "refused"}}).Set(static_cast<double>(refused));
  series_->profiles.Add({{"state", "conflicting"}}).Set(static_cast<double>(conflicting));
}

void Metrics::SetLeads(bool leads) { series_->leads.Set(leads ? 1 : 0); }

void Metrics::SetPages(const PageCounts& pages) {
  const std::lock_guard<std::mutex> lock(series_->verdict_mutex);
  const auto count = [this](const char* result, uint64_t now, uint64_t& told) {
    // Concurrent scrapes may arrive in any order.
    const uint64_t more = now > told ? now - told : 0;
    series_->pages.Add({{"result", result}}).Increment(static_cast<double>(more));
    told += more;
  };
  count("ok", pages.ok, series_->pages_told.ok);
  count("unreachable", pages.unreachable, series_->pages_told.unreachable);
  count("unreadable", pages.unreadable, series_->pages_told.unreadable);
}

void Metrics::SetVerdict(const VerdictCounts& counts) {
  const std::lock_guard<std::mutex> lock(series_->verdict_mutex);
  std::map<VerdictSeries, prometheus::Gauge*> now;
  for (const auto& [name, pods] : FairlyChosen(counts, kMostVerdictSeries)) {
    std::map<std::string, std::string> labels = {{"namespace", name.space},
                                                 {"job", name.job},
                                                 {"reason", name.reason},
                                                 {"severity", name.warning ? "warning" : "info"}};
    if (!name.rail.empty()) labels.insert({{"rail", name.rail}, {"node", name.node}});
    prometheus::Gauge& gauge = series_->verdict.Add(labels);
    gauge.Set(static_cast<double>(pods));
    now[name] = &gauge;
  }
  series_->left_out.Set(static_cast<double>(counts.size() - now.size()));
  for (const auto& [name, gauge] : series_->verdict_gauges) {
    if (!now.contains(name)) series_->verdict.Remove(gauge);
  }
  series_->verdict_gauges = std::move(now);
}

void Metrics::SetGangs(const gangs::GangCounts& counts) {
  const auto set = [this](const char* state, size_t gangs) {
    series_->gangs.Add({{"state", state}}).Set(static_cast<double>(gangs));
  };
  set("incomplete", counts.incomplete);
  set("waiting", counts.waiting);
  set("running", counts.running);
  series_->gang_wait.Set(absl::ToDoubleSeconds(counts.longest_wait));
  const std::lock_guard<std::mutex> lock(series_->verdict_mutex);
  prometheus::Gauge* oldest = nullptr;
  if (!counts.longest_name.empty()) {
    oldest = &series_->oldest_gang.Add(
        {{"namespace", counts.longest_space}, {"gang", counts.longest_name}});
    oldest->Set(absl::ToDoubleSeconds(counts.longest_wait));
  }
  if (series_->oldest != oldest && series_->oldest != nullptr) {
    series_->oldest_gang.Remove(series_->oldest);
  }
  series_->oldest = oldest;
  const auto grow = [](prometheus::Counter& counter, uint64_t now) {
    // Concurrent scrapes may arrive in any order.
    counter.Increment(std::max(0.0, static_cast<double>(now) - counter.Value()));
  };
  grow(series_->gangs_placed, counts.placed);
  grow(series_->pods_replanned, counts.replanned);
}

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

}  // namespace railhead::op
