// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/collectives/ring_allgather.h"
#include "runtime/collectives/ring_allreduce.h"
#include "runtime/collectives/ring_barrier.h"
#include "runtime/collectives/ring_broadcast.h"
#include "runtime/collectives/ring_reduce.h"
#include "runtime/collectives/ring_reduce_scatter.h"

namespace railhead::comm {
namespace {

// Longer than ranks that finish together need; a rank that goes on working does not hold up one
// that leaves.
constexpr absl::Duration kLongestGoodbye = absl::Seconds(10);

// "pod a on node b", with what is known.
std::string Place(const config::Settings& settings) {
  std::vector<std::string> parts;
  if (!settings.pod.empty()) parts.push_back(absl::StrCat("pod ", settings.pod));
  if (!settings.node.empty()) {
    parts.push_back(absl::StrCat(settings.pod.empty() ? "" : "on ", "node ", settings.node));
  }
  return absl::StrJoin(parts, " ");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Create(CommunicatorOptions options) {
  const config::Settings& settings = options.setup.settings;
  const config::Rendezvous& rendezvous = options.rendezvous;
  const std::string place = Place(settings);
  const std::string self = bootstrap::DescribeRank(rendezvous.rank, place);
  const Logger log(settings.log_level, self);

  bootstrap::JoinOptions join;
  join.rank = rendezvous.rank;
  join.world_size = rendezvous.world_size;
  join.host = rendezvous.master_addr;
  join.port = rendezvous.master_port;
  join.listener = std::move(options.listener);
  join.job = options.key.empty() ? settings.job : options.key;
  join.name = place;
  join.deadline = absl::Now() + settings.timeout;
  join.log = log;
  absl::StatusOr<bootstrap::Bootstrap> bootstrap = bootstrap::Bootstrap::Join(std::move(join));
  if (!bootstrap.ok()) return bootstrap.status();

  std::unique_ptr<Communicator> comm(new Communicator());
  comm->settings_ = settings;
  comm->rank_ = rendezvous.rank;
  comm->world_size_ = rendezvous.world_size;
  comm->self_ = self;
  comm->rejected_ = bootstrap->rejected_connections();

  absl::StatusOr<Fabric> fabric = SetUp(*bootstrap, options.setup);
  if (!fabric.ok()) return fabric.status();
  comm->fabric_ = *std::move(fabric);
  comm->transport_ = comm->fabric_.rails.front().transport;
  if (!comm->degraded_reason().empty()) {
    log.Warn(absl::StrCat("degraded: ", comm->degraded_reason()));
  }

  absl::StatusOr<std::unique_ptr<bootstrap::Watch>> watch =
      bootstrap::Watch::Start(*std::move(bootstrap));
  if (!watch.ok()) return watch.status();
  comm->watch_ = *std::move(watch);
  absl::StatusOr<std::unique_ptr<rails::Mesh>> mesh = rails::Mesh::Create(
      std::move(comm->fabric_.peers), {&comm->watch_->failed(), comm->watch_->event_fd()});
  if (!mesh.ok()) return mesh.status();
  comm->mesh_ = *std::move(mesh);
  if (comm->fabric_.segment.has_value()) {
    comm->group_ = std::make_unique<shm::Group>(comm->fabric_.segment->data(), comm->rank_,
                                                comm->world_size_, comm->fabric_.decision.crowded);
  }

  if (settings.metrics_port != 0) {
    absl::StatusOr<std::unique_ptr<metrics::Server>> server =
        metrics::Serve(settings.metrics_port, [raw = comm.get()] { return raw->Read(); });
    // Metrics are for people who look at the job; the job does not need them.
    if (server.ok()) {
      comm->server_ = *std::move(server);
    } else {
      log.Warn(server.status().message());
    }
  }
  log.Info(absl::StrCat(
      "connected over ", comm->transport_, " on ",
      absl::StrJoin(comm->fabric_.rails, ", ", [](std::string* out, const rails::RailName& name) {
        absl::StrAppend(out, rails::ToString(name));
      })));
  return comm;
}

Communicator::~Communicator() {
  server_.reset();
  // Leaving together: a link that closes while the other side still reads could lose its last
  // bytes.
  if (watch_ != nullptr && mesh_ != nullptr && failure_.ok()) {
    watch_->Goodbye(absl::Now() + std::min(settings_.timeout, kLongestGoodbye));
  }
  mesh_.reset();
}

absl::Status Communicator::AllReduce(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                                     std::byte* receive, size_t count) {
  const reduce::Reduction reduction = {type, op, world_size_, {}};
  return Run(
      metrics::Collective::kAllReduce, count * reduce::SizeOf(type),
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.AllReduce(reduction, send, receive, count, patience);
      },
      [&](collectives::Messenger& messenger) {
        return collectives::RingAllReduce(messenger, rank_, world_size_, reduction, send, receive,
                                          count);
      });
}

absl::Status Communicator::AllGather(const std::byte* send, std::byte* receive, size_t bytes) {
  return Run(
      metrics::Collective::kAllGather, static_cast<size_t>(world_size_) * bytes,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.AllGather(send, receive, bytes, patience);
      },
      [&](collectives::Messenger& messenger) {
        return collectives::RingAllGather(messenger, rank_, world_size_, send, receive, bytes);
      });
}

absl::Status Communicator::ReduceScatter(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                                         std::byte* receive, size_t count) {
  const reduce::Reduction reduction = {type, op, world_size_, {}};
  return Run(
      metrics::Collective::kReduceScatter,
      static_cast<size_t>(world_size_) * count * reduce::SizeOf(type),
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.ReduceScatter(reduction, send, receive, count, patience);
      },
      [&](collectives::Messenger& messenger) {
        return collectives::RingReduceScatter(messenger, rank_, world_size_, reduction, send,
                                              receive, count);
      });
}

absl::Status Communicator::Broadcast(const std::byte* send, std::byte* receive, size_t bytes,
                                     int root) {
  return Run(
      metrics::Collective::kBroadcast, bytes,
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.Broadcast(send, receive, bytes, root, patience);
      },
      [&](collectives::Messenger& messenger) {
        return collectives::RingBroadcast(messenger, rank_, world_size_, root, send, receive,
                                          bytes);
      });
}

absl::Status Communicator::Reduce(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                                  std::byte* receive, size_t count, int root) {
  const reduce::Reduction reduction = {type, op, world_size_, {}};
  return Run(
      metrics::Collective::kReduce, count * reduce::SizeOf(type),
      [&](shm::Group& group, const shm::Patience& patience) {
        return group.Reduce(reduction, send, receive, count, root, patience);
      },
      [&](collectives::Messenger& messenger) {
        return collectives::RingReduce(messenger, rank_, world_size_, root, reduction, send,
                                       receive, count);
      });
}

absl::Status Communicator::Barrier() {
  return Run(
      metrics::Collective::kBarrier, 0,
      [](shm::Group& group, const shm::Patience& patience) { return group.Barrier(patience); },
      [&](collectives::Messenger& messenger) {
        return collectives::RingBarrier(messenger, rank_, world_size_);
      });
}

absl::Status Communicator::Run(
    metrics::Collective collective, size_t bytes,
    absl::FunctionRef<absl::Status(shm::Group& group, const shm::Patience& patience)> shared,
    absl::FunctionRef<absl::Status(collectives::Messenger& messenger)> ring) {
  if (!failure_.ok()) return failure_;
  const uint64_t number = collectives_++;
  const absl::Time start = absl::Now();
  absl::Status status;
  if (group_ != nullptr) {
    status = shared(*group_, {group_->Look(), settings_.timeout, &watch_->failed()});
  } else {
    mesh_->Begin(settings_.timeout);
    status = ring(*mesh_);
    if (status.ok()) status = mesh_->Finish();
  }
  if (!status.ok()) {
    failure_ =
        Fail(absl::StrCat(metrics::Name(collective), " number ", number, " (", bytes, " bytes)"),
             status);
    return failure_;
  }
  stats_.Record(collective, bytes, absl::Now() - start);
  return absl::OkStatus();
}

absl::Status Communicator::Fail(absl::string_view what, const absl::Status& cause) {
  const std::string where = absl::StrCat(self_, ": ", what);
  if (absl::IsCancelled(cause)) {
    const absl::Status verdict = watch_->verdict();
    return absl::Status(verdict.code(), absl::StrCat(where, " was stopped: ", verdict.message()));
  }
  absl::Status own(cause.code(), absl::StrCat(where, ": ", cause.message()));
  const absl::Status verdict = watch_->Announce(own);
  if (verdict.message() == own.message()) return own;
  return absl::Status(verdict.code(),
                      absl::StrCat(verdict.message(), "; noticed as: ", own.message()));
}

void Communicator::Abort(const std::string& reason) {
  watch_->Announce(absl::AbortedError(absl::StrCat(self_, ": ", reason))).IgnoreError();
}

std::vector<rails::RailTotals> Communicator::Rails() const {
  if (group_ != nullptr) {
    return {{fabric_.rails.front(), true, group_->given_bytes(), group_->taken_bytes()}};
  }
  std::vector<rails::RailTotals> totals = mesh_->Totals();
  if (totals.empty()) {
    for (const rails::RailName& name : fabric_.rails) totals.push_back({name});
  }
  return totals;
}

metrics::Snapshot Communicator::Read() const {
  metrics::Snapshot snapshot;
  snapshot.job = settings_.job;
  snapshot.rank = rank_;
  snapshot.degraded_reason = degraded_reason();
  snapshot.rejected_connections = rejected_;
  snapshot.rails = Rails();
  snapshot.collectives = stats_.Read();
  return snapshot;
}

}  // namespace railhead::comm
