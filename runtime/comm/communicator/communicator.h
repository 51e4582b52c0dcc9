// SPDX-License-Identifier: Apache-2.0
//
// Communicator: a group of ranks that run collectives together. It combines the modules below it,
// adds context (rank, collective) to their errors, and fails the job on all ranks. Used by the C
// API (comm/api/). One thread at a time, except where stated.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_COMMUNICATOR_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_COMMUNICATOR_H_

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/fork.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/collectives/collective.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/comm/communicator/call_executor.h"
#include "runtime/comm/communicator/direct_memory.h"
#include "runtime/comm/communicator/family.h"
#include "runtime/comm/communicator/hang_reporter.h"
#include "runtime/comm/communicator/lane.h"
#include "runtime/comm/communicator/measure.h"
#include "runtime/comm/communicator/paths.h"
#include "runtime/comm/communicator/tender.h"
#include "runtime/comm/setup/joining.h"
#include "runtime/comm/setup/setup.h"
#include "runtime/config/env.h"
#include "runtime/metrics/exporter.h"
#include "runtime/metrics/identity.h"
#include "runtime/metrics/snapshot.h"
#include "runtime/metrics/start.h"
#include "runtime/net/address.h"

namespace railhead::comm {

class Communicator {
 public:
  // All ranks of the job must call it; returns when all are connected. After an error, every rank
  // that has reached the rendezvous returns the same text.
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(CommunicatorOptions options);

  // Leaves the group and deletes the communicator. Ranks may leave several communicators in
  // different orders, so it waits for the remaining ranks in the background.
  static void Leave(std::unique_ptr<Communicator> communicator);
  // Leaves the group, and waits for the other ranks, at most the timeout of a collective. Only
  // destruction is allowed afterwards.
  absl::Status Finalize();
  // Leaves the group, and waits for the other ranks.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // A collective of the C API, documented there; the C API checks the arguments. Blocks until it is
  // done. One thread at a time. After an error, all further calls fail, on all ranks.
  absl::Status Run(const collectives::Operation& operation) { return executor_->Run(operation); }
  // Concurrent sends and receives. Only the ranks that they name need to take part.
  absl::Status Transfer(absl::Span<const collectives::Transfer> transfers) {
    return executor_->Transfer(transfers);
  }
  // Thread-safe. Starts a transfer that runs concurrently with everything else. After an error,
  // nothing was started.
  absl::Status StartTransfer(LaneTransfer& transfer);
  // Thread-safe. Number of these transfers that are not done.
  size_t UnfinishedTransfers() const;

  // The program's memory that it accesses, and communicators that are made from it.
  DirectMemory& memory() { return *memory_; }
  const DirectMemory& memory() const { return *memory_; }
  const Family& family() const { return *family_; }

  // Thread-safe. Ends the communicator on all ranks; a running collective returns `reason`.
  void Abort(const std::string& reason);
  // Like Abort, but the communicator can be shrunk afterwards, as after a failure.
  void Revoke(const std::string& reason);
  // Fails the job after an error outside a collective; returns the error that all ranks get.
  absl::Status GiveUp(absl::string_view what, const absl::Status& cause);

  // Ends its page of metrics: what has become of its rails does not apply to those of the
  // communicator that takes its place.
  void Unpublish() { metrics_.reset(); }

  // Thread-safe. Abort status of the job; OK while it has not failed.
  absl::Status verdict() const { return watch_->verdict(); }

  // Thread-safe. Describes for the user which algorithm a collective (named as in metrics) uses,
  // and why.
  absl::StatusOr<std::string> Explain(absl::string_view collective, size_t bytes) const;

  // Returns true in a process forked from the one that created the communicator; it must not use
  // it.
  bool IsForeign() const { return process_.IsForeign(); }

  const config::Settings& settings() const { return setup_.settings; }
  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  const std::string& transport() const { return transport_; }
  // Thread-safe. Reasons may be added when GPU memory is registered, and when a
  // rail reconnects.
  std::string degraded_reason() const;
  uint64_t rejected_connections() const { return rejected_; }
  // See Decision::flat_reason.
  const std::string& unused_memory_reason() const { return fabric_.decision.flat_reason; }
  // Thread-safe. See WireCheck::LeavesBy.
  std::string leaves_by(int rail) const { return fabric_.wires.LeavesBy(rail); }
  // Thread-safe. The rails in use; with a single rank, they carry no data.
  std::vector<rails::RailTotals> Rails() const;
  // Port of the metrics page; 0 without one.
  int metrics_port() const { return metrics_ != nullptr ? metrics_->port() : 0; }

 private:
  Communicator() = default;
  static absl::StatusOr<std::unique_ptr<Communicator>> Start(CommunicatorOptions options);
  // Steps of the start. A communicator created from another one logs and drops algorithm overrides
  // that it cannot follow.
  void LogStart(const Logger& log) const;
  absl::Status UseSharedMemory();
  absl::Status StartTuner(std::vector<tuner::Pin> pins, bool made_of_another, const Logger& log);
  void PublishMetrics(const Logger& log);

  Measurers MeasuredRanks() const;
  // Returns the maximum number of peers that this rank can be connected to at once; RDMA
  // connections pin memory.
  int MostPeers() const;
  absl::Status CheckPins(const std::vector<tuner::Pin>& pins, const tuner::Network& network) const;

  void MakeHelpers();
  // Fails the job with an error of this rank. `report`: status of all ranks; "" if it was not
  // requested.
  absl::Status Fail(absl::string_view what, const absl::Status& cause,
                    absl::string_view report = "") const;
  // Thread-safe. Total data sent and received, by peer.
  std::vector<Flow> Flows() const;
  std::unique_ptr<HangReporter> MakeHangReporter(const std::string& group, const Logger& log) const;
  metrics::Snapshot Read() const;
  // Thread-safe. Counters of the ports of RDMA rails, from sysfs.
  std::vector<metrics::PortSnapshot> Ports() const;

  // Returns the job's abort status with the context of this rank.
  absl::Status WhyFailed() const;
  // Waits until all sent data is known to have arrived, announces that this rank leaves, and waits
  // for the other ranks, each until its deadline. Returns true if no rank needs this one any
  // longer.
  bool Depart(absl::Time settled_by, absl::Time others_left_by);
  absl::StatusOr<std::shared_ptr<Lane>> StartLane();
  // Returns the lane, started if it was not.
  absl::StatusOr<Lane*> OpenLane();
  // Returns true if another rank has sent something for this one's lane, which is not started yet.
  bool IsLaneCalled();
  // Ranks with which this one shares the lane's memory, itself included.
  const std::vector<int>& LaneRanks() const;
  // Does what other ranks need of this one while none of its calls runs.
  void Tend(absl::Time now);
  // Null before the first transfer.
  Lane* lane() const { return lane_started_.load(std::memory_order_acquire); }

  const OwnProcess process_;
  SetupOptions setup_;
  net::IpAddress address_;  // address of this process for other ranks
  int rank_ = 0;
  int world_size_ = 1;
  std::string self_;  // "rank 2 (pod a on node b)"
  std::string of_;    // "communicator 'tp': " if it has a name
  std::string transport_;
  uint64_t rejected_ = 0;
  std::atomic<bool> aborted_ = false;
  bool departed_ = false;

  // In the order of their dependencies.
  Fabric fabric_;
  metrics::Start start_;
  std::unique_ptr<bootstrap::Watch> watch_;
  Paths paths_;
  // Returns true if a wait that has timed out continues, because it waits for ranks that have not
  // called yet.
  const std::function<bool()> go_on_ = [this] { return hang_reporter_->WaitsForCallers(*watch_); };
  std::unique_ptr<CallExecutor> executor_;
  std::optional<DirectMemory> memory_;
  std::optional<Family> family_;
  std::unique_ptr<HangReporter> hang_reporter_;
  std::mutex lane_mutex_;                   // held while the lane is started
  std::optional<rails::Reach> lane_reach_;  // until then; null without rails
  std::shared_ptr<Lane> lane_;
  std::atomic<Lane*> lane_started_ = nullptr;
  std::unique_ptr<Tender> tender_;  // if there are other ranks
  std::shared_ptr<const metrics::Identity> identity_;
  std::unique_ptr<metrics::Exporter::Registration> metrics_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_COMMUNICATOR_H_
