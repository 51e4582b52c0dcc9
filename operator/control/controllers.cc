// SPDX-License-Identifier: Apache-2.0
#include "operator/control/controllers.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>

namespace railhead::op {
namespace {

kube::ElectionOptions Election(const std::string& identity) {
  kube::ElectionOptions election;
  election.identity = identity;
  return election;
}

// Returns a callback that logs election errors when they change.
std::function<void(const absl::Status&)> TellTrouble() {
  return [last = std::string()](const absl::Status& trouble) mutable {
    const std::string now(trouble.message());
    if (now == last) return;
    last = now;
    if (trouble.ok()) {
      spdlog::info("leader election recovered");
    } else {
      spdlog::warn("election: {}", now);
    }
  };
}

template <typename Part>
std::jthread Running(Part& part) {
  return std::jthread([&part](const std::stop_token& stop) { part.Run(stop); });
}

}  // namespace

Controllers::Controllers(const ControllersOptions& options, kube::Api* api)
    : tell_missed_pods_(options.tell_missed_pods),
      memlock_raised_(options.memlock_raised),
      elector_(Election(options.identity),
               {"coordination.k8s.io/v1", "leases", options.space, options.lease}, api,
               {[this] {
                  spdlog::info("this replica is the leader");
                  status_writer_.Wake();
                  if (collector_ != nullptr) collector_->OnLead();
                  if (gangs_ != nullptr) gangs_->OnLead();
                  if (topology_ != nullptr) topology_->OnLead();
                },
                [] { spdlog::info("lost leadership"); }, TellTrouble()},
               // As the chart's own, so that `railhead doctor` finds it.
               kube::Json{{"app.kubernetes.io/part-of", "railhead"}}),
      caches_({.rdma_resources = options.rdma_resources,
               .excluded_namespaces = options.excluded_namespaces,
               .namespaces = options.namespaces,
               .verdicts = options.verdicts,
               .gangs = options.gangs,
               .topology = options.topology},
              api),
      feed_(&caches_,
            [this] {
              status_writer_.Wake();
              if (collector_ != nullptr) collector_->OnProfiles();
            }),
      collector_(
          options.verdicts
              ? std::make_unique<Collector>(
                    CollectorOptions{options.identity, options.namespaces, options.fetch,
                                     [this] { return Settings(); }, options.clock, options.now},
                    api, &caches_, &feed_, [this] { return elector_.Leads(); })
              : nullptr),
      status_writer_(
          api, &caches_.profiles().cache(), &feed_, [this] { return elector_.Leads(); },
          options.clock),
      gangs_(options.gangs
                 ? std::make_unique<gangs::GangController>(
                       gangs::GangControllerOptions{.host = options.identity,
                                                    .server_time = options.server_time,
                                                    .rdma_resources = options.rdma_resources,
                                                    .reserve_after = options.gang_reserve_after,
                                                    .topology = options.topology},
                       api, &caches_, [this] { return elector_.Leads(); })
                 : nullptr),
      topology_(options.topology
                    ? std::make_unique<topology::TopologyController>(
                          topology::TopologyControllerOptions{.publish = options.publish_topology},
                          api, &caches_, [this] { return elector_.Leads(); })
                    // TellTrouble's function frees what it has.
                    : nullptr) {}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)

Controllers::~Controllers() {
  Stop();
  caches_.Join();  // its threads call the others
}

void Controllers::Start() {
  feed_thread_ = Running(feed_);
  status_thread_ = Running(status_writer_);
  elector_thread_ = Running(elector_);
  if (gangs_ != nullptr) gangs_thread_ = Running(*gangs_);
  if (topology_ != nullptr) topology_thread_ = Running(*topology_);
  if (collector_ != nullptr) collector_thread_ = Running(*collector_);
  caches_.Start();
}

void Controllers::StopLeading() { elector_thread_.request_stop(); }

void Controllers::Stop() {
  StopLeading();
  caches_.RequestStop();
  feed_thread_.request_stop();
  status_thread_.request_stop();
  collector_thread_.request_stop();
  gangs_thread_.request_stop();
  topology_thread_.request_stop();
}

std::shared_ptr<const ProfileSet> Controllers::Profiles() const {
  const std::shared_ptr<const ClusterProfiles> all = feed_.Get();
  return all == nullptr ? nullptr : all->set;
}

absl::Status Controllers::Synced() const {
  if (absl::Status synced = caches_.Synced(); !synced.ok()) return synced;
  if (feed_.Get() == nullptr) return absl::UnavailableError("RailProfiles are not read yet");
  return absl::OkStatus();
}

void Controllers::SetAdmissionSince(absl::Time since) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (admission_since_ == since) return;
    admission_since_ = since;
  }
  if (collector_ != nullptr) collector_->OnProfiles();
}

verdict::ClusterSettings Controllers::Settings() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {admission_since_, tell_missed_pods_, memlock_raised_};
}

void Controllers::Report(Metrics& metrics) const {
  for (const kube::InformerState& state : caches_.States()) metrics.SetCache(state);
  if (const std::shared_ptr<const ClusterProfiles> all = feed_.Get(); all != nullptr) {
    const auto conflicting =
        std::count_if(all->reports.begin(), all->reports.end(),
                      [](const auto& report) { return !report.second.conflict.empty(); });
    metrics.SetProfiles(all->set->profiles.size(), all->reports.size() - all->set->profiles.size(),
                        static_cast<size_t>(conflicting));
  }
  if (collector_ != nullptr) {
    metrics.SetPages(collector_->Pages());
    metrics.SetVerdict(collector_->Counts());
  }
  if (gangs_ != nullptr) metrics.SetGangs(gangs_->Counts());
  metrics.SetLeads(elector_.Leads());
}

}  // namespace railhead::op
