// SPDX-License-Identifier: Apache-2.0
//
// A group of ranks that do collectives together: everything below put together, and the place where
// errors get their last context (which rank, which collective) and become the whole job's.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/collectives/messenger.h"
#include "runtime/comm/rdma_rail.h"
#include "runtime/comm/setup.h"
#include "runtime/config/env.h"
#include "runtime/metrics/collective_stats.h"
#include "runtime/metrics/page.h"
#include "runtime/net/fd.h"
#include "runtime/rails/mesh.h"
#include "runtime/reduce/reduce.h"
#include "runtime/shm/group.h"

namespace railhead::comm {

struct CommunicatorOptions {
  config::Rendezvous rendezvous;
  std::optional<net::Fd> listener;  // rank 0: a socket that listens already
  std::string key;  // ranks with another one are turned away; "": the name of the job
  SetupOptions setup;
};

class Communicator {
 public:
  // Called by all ranks of the job; returns when all are connected. On an error every rank that got
  // as far as the rendezvous returns the same text.
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(CommunicatorOptions options);

  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // The collectives of the C API, which says what they do; arguments are checked there. `count` is
  // of values; with parts, `count` and `bytes` are those of one rank's part. They block until done.
  // One thread at a time. After an error the communicator is of no more use, on any rank.
  absl::Status AllReduce(rhDataType_t type, rhRedOp_t op, const std::byte* send, std::byte* receive,
                         size_t count);
  absl::Status AllGather(const std::byte* send, std::byte* receive, size_t bytes);
  absl::Status ReduceScatter(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                             std::byte* receive, size_t count);
  absl::Status Broadcast(const std::byte* send, std::byte* receive, size_t bytes, int root);
  absl::Status Reduce(rhDataType_t type, rhRedOp_t op, const std::byte* send, std::byte* receive,
                      size_t count, int root);
  absl::Status Barrier();

  // Any thread: ends the communicator on all ranks. A running collective returns with `reason`.
  void Abort(const std::string& reason);

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  const std::string& transport() const { return transport_; }
  const std::string& degraded_reason() const { return fabric_.decision.degraded_reason; }
  uint64_t rejected_connections() const { return rejected_; }
  // Any thread. The rails in use, also those that carry nothing because there is only one rank.
  std::vector<rails::RailTotals> Rails() const;
  // The port of the metrics page; 0 when there is none.
  int metrics_port() const { return server_ != nullptr ? server_->port() : 0; }

 private:
  Communicator() = default;

  // Runs a collective by the one of the two texts that fits: `shared` in shared memory, `ring` over
  // rails. Numbers it, measures it and gives its errors their context. `bytes` as in metrics.
  absl::Status Run(
      metrics::Collective collective, size_t bytes,
      absl::FunctionRef<absl::Status(shm::Group& group, const shm::Patience& patience)> shared,
      absl::FunctionRef<absl::Status(collectives::Messenger& messenger)> ring);
  // Makes the job's verdict of a failure of this rank.
  absl::Status Fail(absl::string_view what, const absl::Status& cause);
  metrics::Snapshot Read() const;

  config::Settings settings_;
  int rank_ = 0;
  int world_size_ = 1;
  std::string self_;  // "rank 2 (pod a on node b)"
  std::string transport_;
  uint64_t rejected_ = 0;
  uint64_t collectives_ = 0;
  absl::Status failure_;
  metrics::CollectiveStats stats_;

  // In the order in which they need each other.
  Fabric fabric_;
  std::unique_ptr<bootstrap::Watch> watch_;
  std::unique_ptr<rails::Mesh> mesh_;
  std::unique_ptr<shm::Group> group_;  // with shared memory, in place of the mesh
  std::unique_ptr<metrics::Server> server_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_H_
