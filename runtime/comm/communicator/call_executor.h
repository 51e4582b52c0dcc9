// SPDX-License-Identifier: Apache-2.0
//
// Executes the calls of a communicator: chooses the algorithm, runs it in shared memory,
// hierarchically or over messages, measures it, and learns from that which algorithm to choose.
// One thread at a time, except where stated.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_CALL_EXECUTOR_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_CALL_EXECUTOR_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/clock.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/collective.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/comm/communicator/paths.h"
#include "runtime/metrics/collective_stats.h"
#include "runtime/recorder/flight_recorder.h"
#include "runtime/shm/patience.h"
#include "runtime/tuner/autotuner.h"

namespace railhead::comm {

class CallExecutor {
 public:
  struct Options {
    int rank = 0;
    int world_size = 1;
    absl::Duration timeout = absl::InfiniteDuration();
    bool crowded = false;                       // see shm::Patience
    const std::atomic<bool>* failed = nullptr;  // true once the job has failed
    // Returns true if a wait that has timed out continues.
    const std::function<bool()>* go_on = nullptr;
    // Returns the state of all ranks, for the message about a call that has timed out.
    std::function<std::string()> report;
    // Fails the job with an error of this rank; returns the error of the call. See
    // Communicator::Fail.
    std::function<absl::Status(absl::string_view what, const absl::Status& cause,
                               absl::string_view report)>
        fail;
  };
  using Messages = absl::FunctionRef<absl::Status(collectives::Messenger& messenger)>;

  // `paths` must outlive this, and be complete before the first call.
  CallExecutor(const Paths& paths, Options options) : paths_(paths), options_(std::move(options)) {}

  // Collectives need a tuner, unless all ranks share memory.
  void Use(tuner::Tuner tuner);

  // See Communicator.
  absl::Status Run(const collectives::Operation& operation);
  absl::Status Transfer(absl::Span<const collectives::Transfer> transfers);

  // The only way to use the mesh: it ends after the given time without progress, and the mesh is
  // tended as soon as `messages` has returned. `go_on`: see Patient::Begin.
  absl::Status OverRails(absl::Duration patience, Messages messages,
                         const std::function<bool()>* go_on = nullptr);

  // The error of the first call that failed, which all further calls return; OK before.
  const absl::Status& failure() const { return failure_; }
  // Fails all further calls; returns the error.
  absl::Status Fail(absl::string_view what, const absl::Status& cause,
                    absl::string_view report = "");
  absl::Status Fail(const absl::Status& failure) { return failure_ = failure; }

  // Thread-safe.
  // Returns true for collectives that run in shared memory if all ranks share it. Sends and
  // receives are messages there, too.
  static bool IsDoneInMemory(collectives::Collective collective) {
    return collective != collectives::Collective::kSendReceive;
  }
  // Describes which algorithm a collective uses, and why; not if it is done in memory.
  std::string Explain(collectives::Collective collective, size_t bytes) const;
  // Peers of the sends and receives that run, some of them.
  std::vector<int> awaited() const;
  const recorder::FlightRecorder& recorder() const { return recorder_; }
  const metrics::CollectiveStats& stats() const { return stats_; }

 private:
  // A call that is running, for metrics and messages; `bytes` as in metrics.
  struct Work {
    collectives::Collective collective;
    collectives::Algorithm algorithm;
    size_t bytes;
    collectives::Call call;
    tuner::Autotuner::Turn turn = {};  // the autotuner's choice, if it made one
  };

  // Returns the next collective and its algorithm: all ranks make the same choices, because they
  // call the same collectives in the same order.
  Work Choose(const collectives::Operation& operation);
  // Numbers and measures a call, and adds context to its errors.
  template <class Body>
  absl::Status Measured(const Work& work, const Body& run);
  // Fails if another rank is known to call something else.
  absl::Status Begin(const Work& work);
  absl::Status Execute(const Work& work, const collectives::Operation& operation);
  absl::Status OverMessages(const Work& work, const collectives::Operation& operation);
  // Messages may go through shared memory, too.
  absl::Status Exchange(const Work& work, Messages messages);
  // Passes the duration of a call to the autotuner; at the end of a trial, all ranks agree on the
  // result.
  absl::Status Learn(const Work& work, double seconds);
  shm::Patience SharedPatience() const;

  const Paths& paths_;
  const Options options_;
  absl::Status failure_;
  Clock clock_;
  metrics::CollectiveStats stats_;
  recorder::FlightRecorder recorder_;
  mutable std::mutex learning_;  // guards the autotuner and its trials
  std::optional<tuner::Autotuner> autotuner_;
  mutable std::mutex awaiting_;  // guards awaited_
  std::vector<int> awaited_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_CALL_EXECUTOR_H_
