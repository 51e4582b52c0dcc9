// SPDX-License-Identifier: Apache-2.0
//
// Observation of a communicator: explanations for users, the metrics page, and data for
// HangReporter.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "fabric/port_counters.h"
#include "fabric/root_files.h"
#include "runtime/base/log.h"
#include "runtime/base/traffic.h"
#include "runtime/collectives/collective.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/communicator/hang_reporter.h"
#include "runtime/comm/communicator/lane.h"
#include "runtime/metrics/snapshot.h"
#include "runtime/rails/mesh.h"
#include "runtime/rails/rail_totals.h"
#include "runtime/recorder/flight_file.h"
#include "runtime/recorder/position.h"

namespace railhead::comm {

using collectives::Collective;

namespace {

std::vector<metrics::PortSnapshot> ReadPorts(const std::string& root,
                                             const std::vector<rails::RailName>& rails) {
  std::vector<metrics::PortSnapshot> ports;
  // Opened each time: a process may have many communicators, and reads this every few seconds.
  const absl::StatusOr<fabric::RootFiles> files = fabric::RootFiles::Open(root);
  if (!files.ok()) return ports;
  for (const rails::RailName& name : rails) {
    ports.push_back({name, fabric::ReadPortCounters(*files, name.device, name.port)});
  }
  return ports;
}

}  // namespace

absl::StatusOr<std::string> Communicator::Explain(absl::string_view collective,
                                                  size_t bytes) const {
  const auto* const name = std::find(collectives::kCollectiveNames.begin(),
                                     collectives::kCollectiveNames.end(), collective);
  if (name == collectives::kCollectiveNames.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown collective '", collective,
                     "'; known: ", absl::StrJoin(collectives::kCollectiveNames, ", ")));
  }
  const auto kind = static_cast<Collective>(name - collectives::kCollectiveNames.begin());
  if (kind == Collective::kSendReceive) return std::string("send_receive: only one algorithm\n");
  if (paths_.group != nullptr && CallExecutor::IsDoneInMemory(kind)) {
    return absl::StrCat(collective, ": all ranks share memory\n");
  }
  std::string text = executor_->Explain(kind, bytes);
  if (const std::string& reason = unused_memory_reason(); !reason.empty()) {
    absl::StrAppend(&text, "  shared memory inside pods is not used: ", reason, "\n");
  }
  return text;
}

std::vector<Flow> Communicator::Flows() const {
  std::vector<Flow> flows = paths_.mesh->Flows();
  if (const std::optional<Traffic> moved = paths_.InMemory(); moved.has_value()) {
    flows.push_back({-1, 0, *moved});
  }
  return flows;
}

std::unique_ptr<HangReporter> Communicator::MakeHangReporter(const std::string& group,
                                                             const Logger& log) const {
  const config::Settings& settings = setup_.settings;
  HangReporter::Options options;
  options.timeout = settings.timeout;
  options.about.job = settings.job;
  options.about.rank = rank_;
  options.about.world_size = world_size_;
  options.about.pod = settings.pod;
  options.about.node = settings.node;
  options.about.transport = transport_;
  for (const rails::RailName& name : fabric_.rails) {
    options.about.rails.push_back(rails::ToString(name));
  }
  if (!settings.flight_recorder.empty()) {
    options.path = absl::StrCat(settings.flight_recorder, "/", recorder::FileName(group, rank_));
  }
  options.recorder = &executor_->recorder();
  options.flows = [this] { return Flows(); };
  options.last_sign = [this](int rank) {
    const Lane* const transfers = lane();
    return std::max(paths_.mesh->LastSign(rank),
                    transfers != nullptr ? transfers->LastSign(rank) : absl::InfinitePast());
  };
  options.awaited = [this] { return executor_->awaited(); };
  options.transfers = [this](absl::Time now, uint32_t query) {
    Lane* const transfers = lane();
    return transfers != nullptr ? transfers->Still(now, query) : recorder::StillTransfers();
  };
  // Communicators of a family have the same ports; the first one reports them.
  if (transport_ == "verbs" && !setup_.split_off) {
    options.ports = [root = setup_.root, rails = fabric_.rails] { return ReadPorts(root, rails); };
  }
  options.log = log;
  return std::make_unique<HangReporter>(std::move(options));
}

std::vector<rails::RailTotals> Communicator::Rails() const {
  const Lane* const transfers = lane();
  if (paths_.group != nullptr) {
    Traffic moved = paths_.InMemory().value_or(Traffic());
    if (transfers != nullptr) moved += transfers->InMemory();
    rails::RailTotals memory = {fabric_.rails.front()};
    memory.transmit_bytes = moved.sent;
    memory.receive_bytes = moved.received;
    return {memory};
  }
  std::vector<rails::RailTotals> totals = paths_.mesh->Totals();
  if (totals.empty()) {
    for (const rails::RailName& name : fabric_.rails) totals.push_back({name});
  }
  if (transfers != nullptr) rails::Add(transfers->Totals(), totals);
  return totals;
}

std::string Communicator::degraded_reason() const {
  std::string reason = fabric_.decision.degraded_reason;
  for (const std::string& own : {memory_->Trouble(), fabric_.wires.Trouble()}) {
    if (!own.empty()) absl::StrAppend(&reason, reason.empty() ? "" : "; ", self_, ": ", own);
  }
  return reason;
}

std::vector<metrics::PortSnapshot> Communicator::Ports() const {
  if (transport_ != "verbs") return {};
  return ReadPorts(setup_.root, fabric_.rails);
}

metrics::Snapshot Communicator::Read() const {
  metrics::Snapshot snapshot;
  snapshot.job = identity_->job;
  snapshot.rank = identity_->rank;
  snapshot.degraded_reason = degraded_reason();
  snapshot.start = start_;
  snapshot.rejected_connections = rejected_;
  snapshot.rails = Rails();
  snapshot.ports = Ports();
  snapshot.gpu_direct = memory_->known_gpus().Ways();
  snapshot.collectives = executor_->stats().Read();
  for (metrics::KindCounts& kind : snapshot.collectives) kind.comm = setup_.settings.comm_name;
  return snapshot;
}

}  // namespace railhead::comm
