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
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/clock.h"
#include "runtime/base/fork.h"
#include "runtime/base/log.h"
#include "runtime/base/parts.h"
#include "runtime/base/traffic.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/collective.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/point_to_point.h"
#include "runtime/collectives/ways.h"
#include "runtime/comm/communicator/hang_reporter.h"
#include "runtime/comm/communicator/known_gpus.h"
#include "runtime/comm/communicator/lane.h"
#include "runtime/comm/communicator/measure.h"
#include "runtime/comm/communicator/tender.h"
#include "runtime/comm/hierarchy/hierarchy.h"
#include "runtime/comm/hierarchy/patient.h"
#include "runtime/comm/setup/joining.h"
#include "runtime/comm/setup/rdma_rail.h"
#include "runtime/comm/setup/setup.h"
#include "runtime/comm/setup/unique_id.h"
#include "runtime/config/env.h"
#include "runtime/device/cuda_api.h"
#include "runtime/device/memory.h"
#include "runtime/metrics/collective_stats.h"
#include "runtime/metrics/exporter.h"
#include "runtime/metrics/identity.h"
#include "runtime/metrics/snapshot.h"
#include "runtime/metrics/start.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"
#include "runtime/rails/mesh.h"
#include "runtime/recorder/flight_recorder.h"
#include "runtime/reduce/reduce.h"
#include "runtime/shm/group.h"
#include "runtime/shm/mailbox.h"
#include "runtime/shm/patience.h"
#include "runtime/tuner/autotuner.h"

namespace railhead::comm {

// Options of a communicator that is created from another one.
struct MakingOptions {
  config::Fields fields;              // settings that differ from the other's (config::Configure)
  std::shared_ptr<StartAbort> abort;  // see CommunicatorOptions
};

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

  // The collectives of the C API, documented there; the C API checks the arguments. `count` and the
  // parts of ReduceScatter are in values; other parts are in bytes. They block until done. One
  // thread at a time. After an error, all further calls fail, on all ranks.
  absl::Status AllReduce(rhDataType_t type, rhRedOp_t op, const std::byte* send, std::byte* receive,
                         size_t count);
  absl::Status AllGather(const std::byte* send, std::byte* receive, const Parts& parts);
  absl::Status ReduceScatter(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                             std::byte* receive, const Parts& parts);
  // The buffers must not overlap.
  absl::Status AllToAll(const std::byte* send, const Parts& send_parts, std::byte* receive,
                        const Parts& receive_parts);
  absl::Status Broadcast(const std::byte* send, std::byte* receive, size_t bytes, int root);
  absl::Status Reduce(rhDataType_t type, rhRedOp_t op, const std::byte* send, std::byte* receive,
                      size_t count, int root);
  // `bytes`: size of one rank's part.
  absl::Status Gather(const std::byte* send, std::byte* receive, size_t bytes, int root);
  absl::Status Scatter(const std::byte* send, std::byte* receive, size_t bytes, int root);
  absl::Status Barrier();
  // Concurrent sends and receives. Only the ranks that they name need to take part.
  absl::Status Transfer(absl::Span<const collectives::Transfer> transfers);
  // Thread-safe. Starts a transfer that runs concurrently with everything else. After an error,
  // nothing was started.
  absl::Status StartTransfer(LaneTransfer& transfer);
  // Thread-safe. Number of these transfers that are not done.
  size_t UnfinishedTransfers() const;

  // Creates a communicator of the ranks with the same colour, in the order of their keys; null for
  // a negative colour. All ranks must call it.
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key,
                                                      const MakingOptions& options = {});
  // Creates a communicator without the excluded ranks, also after a failure. All remaining ranks
  // must call it.
  absl::StatusOr<std::unique_ptr<Communicator>> Shrink(const std::set<int>& excluded,
                                                       const MakingOptions& options = {});
  // Creates a communicator of all ranks, which keep their numbers, and of new ranks, which join at
  // `meeting` on their own.
  absl::StatusOr<std::unique_ptr<Communicator>> Grow(const UniqueId& meeting, int world_size,
                                                     const MakingOptions& options = {});

  // Creates a window (shm/window.h) of one piece of memory per rank, and returns its number. All
  // ranks must call it, and CloseWindow. Returns InvalidArgument on all ranks if a piece was not
  // allocated with rhMemAlloc; the communicator stays usable. Without shared memory it has no
  // effect. `wrong`: why this rank cannot take part, which it then returns.
  absl::StatusOr<size_t> OpenWindow(std::byte* memory, size_t bytes,
                                    const absl::Status& wrong = absl::OkStatus());
  void CloseWindow(size_t window);

  // Thread-safe. Registers memory of this rank, also of a GPU, with its RDMA rails, which then send
  // large messages without copying. The memory must stay valid until the result is released, or, if
  // it has an owner, until the owner is. Managed memory is not registered. Returns an error if the
  // GPU driver fails.
  using Registration = std::vector<std::shared_ptr<const void>>;  // by rail
  absl::StatusOr<Registration> Register(absl::Span<const std::byte> memory,
                                        const std::shared_ptr<const void>& owner) const;

  // Thread-safe. Ends the communicator on all ranks; a running collective returns `reason`.
  void Abort(const std::string& reason);
  // Like Abort, but the communicator can be shrunk afterwards, as after a failure.
  void Revoke(const std::string& reason);
  // Fails the job after an error outside a collective; returns the error that all ranks get.
  absl::Status GiveUp(absl::string_view what, const absl::Status& cause);

  // Thread-safe. Driver of GPUs whose memory buffers may be in; null if none is loaded.
  const device::CudaApi* cuda() const {
    return setup_.cuda != nullptr ? setup_.cuda->Loaded() : nullptr;
  }
  // Pinned memory for copies of such buffers. Used by the thread that runs a call.
  struct Staging {
    device::PinnedMemory send;
    device::PinnedMemory receive;
  };
  Staging& staging() { return *staging_; }
  // Thread-safe. Registered GPU memory.
  const KnownGpus& known_gpus() const { return *known_gpus_; }
  // Returns true if rails may send these bytes to `peer` directly from GPU memory: they are
  // registered, and do not go through shared memory.
  bool ReadsGpu(absl::Span<const std::byte> bytes, const device::Memory& gpu, int peer) const {
    return over_verbs_ && known_gpus_->AreRead(bytes, gpu) &&
           (hierarchy_ == nullptr || !hierarchy_->IsHere(peer));
  }
  // Like ReadsGpu, for a broadcast; false if ranks of a place pass it on in shared memory.
  bool BroadcastsGpu(absl::Span<const std::byte> bytes, const device::Memory& gpu) const {
    return hierarchy_ == nullptr && over_verbs_ && known_gpus_->AreRead(bytes, gpu);
  }
  // Disables the copying of small messages while it exists.
  class NothingCopied {
   public:
    explicit NothingCopied(Communicator& communicator) : mesh_(*communicator.mesh_) {
      mesh_.CopySmall(false);
    }
    ~NothingCopied() { mesh_.CopySmall(true); }
    NothingCopied(const NothingCopied&) = delete;
    NothingCopied& operator=(const NothingCopied&) = delete;

   private:
    rails::Mesh& mesh_;
  };

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

  size_t Ranks() const { return static_cast<size_t>(world_size_); }
  // The call that is running, for metrics and messages; `bytes` as in metrics.
  struct Work {
    collectives::Collective collective;
    collectives::Algorithm algorithm;
    size_t bytes;
    collectives::Call call;
    tuner::Autotuner::Turn turn = {};  // the autotuner's choice, if it made one
  };
  using Shared = absl::FunctionRef<absl::Status(shm::Group& group, const shm::Patience& patience)>;
  using Messages = absl::FunctionRef<absl::Status(collectives::Messenger& messenger)>;
  using InPlaces = absl::FunctionRef<absl::Status(Hierarchy& hierarchy)>;

  // Returns true for collectives that run in shared memory if all ranks share it. Sends and
  // receives are messages there, too.
  static bool IsDoneInMemory(collectives::Collective collective) {
    return collective != collectives::Collective::kSendReceive;
  }
  // Functions of the algorithm over messages, among all ranks or among places (tuner.h).
  template <class Function>
  static Function AmongAll(const Work& work) {
    return collectives::FunctionOf<Function>(work.collective, work.algorithm);
  }
  template <class Function>
  static Function AmongPlaces(const Work& work) {
    return collectives::FunctionOf<Function>(work.collective, work.turn.choice.among_places);
  }

  // Returns the next collective and its algorithm. Call it only for collectives that all ranks call
  // in the same order, because the choice may change from call to call.
  Work Choose(collectives::Call::Arguments arguments, size_t bytes);

  Measurers MeasuredRanks() const;
  // Returns the maximum number of peers that this rank can be connected to at once; RDMA
  // connections pin memory.
  int MostPeers() const;
  absl::Status CheckPins(const std::vector<tuner::Pin>& pins, const tuner::Network& network) const;

  // Runs a call: with `shared` if all ranks share memory, with `in_places` if its algorithm is
  // hierarchical, otherwise with `messages`, which may go through shared memory, too.
  absl::Status Run(const Work& work, Shared shared, InPlaces in_places, Messages messages);
  absl::Status Run(const Work& work, Shared shared, Messages messages);
  absl::Status Run(const Work& work, Messages messages);
  absl::Status Exchange(const Work& work, Messages messages);
  // The only way to use the mesh: it ends after the given time without progress, and the mesh is
  // tended as soon as `messages` has returned.
  // `go_on`: see Patient::Begin.
  absl::Status OverRails(absl::Duration patience, Messages messages,
                         const std::function<bool()>* go_on = nullptr);
  // Numbers and measures a call, and adds context to its errors.
  absl::Status Measured(const Work& work, absl::FunctionRef<absl::Status()> run);
  // Passes the duration of a call to the autotuner; at the end of a trial, all ranks agree on the
  // result.
  absl::Status Learn(const Work& work, double seconds);
  // Fails if another rank is known to call something else.
  absl::Status Begin(const Work& work);
  shm::Patience SharedPatience() const;
  // Returns the group of the ranks that share memory with this one; null if there are none.
  shm::Group* SharedMemoryHere();
  // Fails the job with an error of this rank. `report`: status of all ranks; "" if it was not
  // requested.
  absl::Status Fail(absl::string_view what, const absl::Status& cause,
                    absl::string_view report = "") const;
  // Thread-safe. Total data sent and received, by peer.
  std::vector<Flow> Flows() const;
  Traffic Moved();
  // Part of Moved() that went through shared memory; nullopt without shared memory.
  std::optional<Traffic> InMemory() const;
  std::unique_ptr<HangReporter> MakeHangReporter(const std::string& group, const Logger& log) const;
  metrics::Snapshot Read() const;
  Registration RegisterGpu(absl::Span<const std::byte> memory, const device::Memory& gpu) const;
  // Thread-safe. Counters of the ports of RDMA rails, from sysfs.
  std::vector<metrics::PortSnapshot> Ports() const;

  // Members and rendezvous of a new communicator. `place` is at its first member.
  struct Meeting {
    UniqueId place;
    std::optional<net::Fd> listener;                             // only on the first member
    std::shared_ptr<bootstrap::SharedListener> shared_listener;  // instead
    std::vector<int> members;  // ranks of this communicator, in the new order
    int world_size = 0;        // including new ranks
    bool sound = false;        // a failure of this communicator ends it, too
    SetupOptions setup;
  };
  absl::StatusOr<std::unique_ptr<Communicator>> Meet(Meeting meeting,
                                                     const MakingOptions& options) const;
  // Returns why not all of these members will come; OK while they may.
  absl::Status WhyHopeless(const std::vector<int>& members, bool sound) const;
  absl::Status WhyAborted() const;
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
  std::unique_ptr<Staging> staging_ = std::make_unique<Staging>();  // null after Depart
  const std::shared_ptr<KnownGpus> known_gpus_ = std::make_shared<KnownGpus>();
  bool over_verbs_ = false;  // all messages go over RDMA
  net::IpAddress address_;   // address of this process for other ranks
  int rank_ = 0;
  int world_size_ = 1;
  std::string self_;  // "rank 2 (pod a on node b)"
  std::string of_;    // "communicator 'tp': " if it has a name
  std::string transport_;
  uint64_t rejected_ = 0;
  absl::Status failure_;
  std::atomic<bool> aborted_ = false;
  bool departed_ = false;
  mutable std::mutex awaiting_;  // guards awaited_
  std::vector<int> awaited_;
  Clock clock_;
  metrics::CollectiveStats stats_;
  recorder::FlightRecorder recorder_;

  // In the order of their dependencies.
  Fabric fabric_;
  metrics::Start start_;
  std::unique_ptr<bootstrap::Watch> watch_;
  std::unique_ptr<rails::Mesh> mesh_;
  // Returns true if a wait that has timed out continues, because it waits for ranks that have not
  // called yet.
  const std::function<bool()> go_on_ = [this] { return hang_reporter_->WaitsForCallers(*watch_); };
  std::unique_ptr<Patient> patient_;       // over the mesh
  std::unique_ptr<shm::Group> group_;      // if all ranks share memory
  std::unique_ptr<shm::Mailbox> mailbox_;  // if there is a group
  std::unique_ptr<HangReporter> hang_reporter_;
  std::unique_ptr<Hierarchy> hierarchy_;  // if some places share memory
  mutable std::mutex learning_;           // guards the autotuner and its trials
  std::optional<tuner::Autotuner> autotuner_;
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
