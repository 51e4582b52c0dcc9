// SPDX-License-Identifier: Apache-2.0
//
// A group of ranks that do collectives together: everything below put together, and the place where
// errors get their last context (which rank, which collective) and become the whole job's.
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
#include "fabric/root_files.h"
#include "runtime/base/clock.h"
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

// How a communicator is made of another one.
struct MakingOptions {
  config::Fields fields;              // its settings, besides the other's (config::Configure)
  std::shared_ptr<StartAbort> abort;  // see CommunicatorOptions
};

class Communicator {
 public:
  // Called by all ranks of the job; returns when all are connected. On an error every rank that got
  // as far as the rendezvous returns the same text.
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(CommunicatorOptions options);

  // Leaves the others in peace and frees it. Ranks may leave several communicators in different
  // orders, so who has not left by then is waited for in the background.
  static void Leave(std::unique_ptr<Communicator> communicator);
  // Leaves, and waits for the others as long as for a collective. Nothing else can be done with it
  // afterwards.
  absl::Status Finalize();
  // Leaves, and waits for the others.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // The collectives of the C API, which says what they do; arguments are checked there. `count` is
  // of values, as are the parts of ReduceScatter; other parts are in bytes. They block until done.
  // One thread at a time. After an error the communicator is of no more use, on any rank.
  absl::Status AllReduce(rhDataType_t type, rhRedOp_t op, const std::byte* send, std::byte* receive,
                         size_t count);
  absl::Status AllGather(const std::byte* send, std::byte* receive, const Parts& parts);
  absl::Status ReduceScatter(rhDataType_t type, rhRedOp_t op, const std::byte* send,
                             std::byte* receive, const Parts& parts);
  // The buffers do not overlap.
  absl::Status AllToAll(const std::byte* send, const Parts& send_parts, std::byte* receive,
                        const Parts& receive_parts);
  absl::Status Broadcast(const std::byte* send, std::byte* receive, size_t bytes, int root);
  absl::Status Reduce(rhDataType_t type, rhRedOp_t op, const std::byte* send, std::byte* receive,
                      size_t count, int root);
  // `bytes` of one rank.
  absl::Status Gather(const std::byte* send, std::byte* receive, size_t bytes, int root);
  absl::Status Scatter(const std::byte* send, std::byte* receive, size_t bytes, int root);
  absl::Status Barrier();
  // Sends and receives that go on at the same time. Only ranks that they name need to take part.
  absl::Status Transfer(absl::Span<const collectives::Transfer> transfers);
  // Any thread: begins a transfer that goes on beside everything else. It may fail before that, and
  // then nothing has happened.
  absl::Status StartTransfer(std::shared_ptr<LaneTransfer> transfer);
  // Any thread: how many of these are not done.
  size_t UnfinishedTransfers() const;

  // A communicator of the ranks that give the same colour, in the order of their keys; null for a
  // negative colour. Called by all ranks.
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key,
                                                      const MakingOptions& options = {});
  // One of all ranks but these, also after a failure. Called by all that are left.
  absl::StatusOr<std::unique_ptr<Communicator>> Shrink(const std::set<int>& excluded,
                                                       const MakingOptions& options = {});
  // One of all ranks, which keep their numbers, and others, which join at the meeting by
  // themselves.
  absl::StatusOr<std::unique_ptr<Communicator>> Grow(const UniqueId& meeting, int world_size,
                                                     const MakingOptions& options = {});

  // Makes a window (shm/window.h) of a piece of memory of each rank, and returns its number there.
  // Called by all ranks, as is closing it; InvalidArgument on all if one of the pieces is not
  // memory of rhMemAlloc, and the communicator is as good as before. Without shared memory it
  // changes nothing.
  absl::StatusOr<size_t> OpenWindow(std::byte* memory, size_t bytes);
  void CloseWindow(size_t window);

  // Any thread: makes memory of this rank known to its RDMA rails, which then send large messages
  // from where they lie, be it of a GPU. What a user has made known must be there until the result
  // is gone; other memory, which has an owner, until that is gone. Managed memory stays as it was.
  // An error where the driver of GPUs has failed.
  using Registration = std::vector<std::shared_ptr<const void>>;  // by rail
  absl::StatusOr<Registration> Register(absl::Span<const std::byte> memory,
                                        const std::shared_ptr<const void>& owner) const;

  // Any thread: ends the communicator on all ranks. A running collective returns with `reason`.
  void Abort(const std::string& reason);
  // The same, but it can be shrunk afterwards, as after any failure.
  void Revoke(const std::string& reason);
  // The same of a call that fails outside a collective; returns what all ranks are told.
  absl::Status GiveUp(absl::string_view what, const absl::Status& cause);

  // Any thread: the driver by which buffers may be in memory of GPUs; null while there is none.
  const device::CudaApi* cuda() const {
    return setup_.cuda != nullptr ? setup_.cuda->Loaded() : nullptr;
  }
  // Through which such buffers are copied. Of the thread that does a call.
  struct Staging {
    device::PinnedMemory send;
    device::PinnedMemory receive;
  };
  Staging& staging() { return *staging_; }
  // Any thread: what has been made known of such memory.
  const KnownGpus& known_gpus() const { return *known_gpus_; }
  // Whether what is sent to a rank may be left to rails that read it where it lies: known memory of
  // a GPU, which no CPU may touch. Not what goes through memory that ranks share.
  bool ReadsGpu(absl::Span<const std::byte> bytes, const device::Memory& gpu, int peer) const {
    return over_verbs_ && known_gpus_->AreRead(bytes, gpu) &&
           (hierarchy_ == nullptr || !hierarchy_->IsHere(peer));
  }
  // Whether a broadcast of them may: not where ranks of a place pass it on in their memory.
  bool BroadcastsGpu(absl::Span<const std::byte> bytes, const device::Memory& gpu) const {
    return hierarchy_ == nullptr && over_verbs_ && known_gpus_->AreRead(bytes, gpu);
  }
  // While it lives, nothing that is sent is copied for being small.
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

  // Any thread: why the job has failed; OK while it has not.
  absl::Status verdict() const { return watch_->verdict(); }

  // Any thread: which algorithm does a collective (named as in metrics), and why; for people.
  absl::StatusOr<std::string> Explain(absl::string_view collective, size_t bytes) const;

  // Whether this process was forked from the one that made it, and has no part in it.
  bool IsForeign() const { return ::getpid() != process_; }

  const config::Settings& settings() const { return setup_.settings; }
  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  const std::string& transport() const { return transport_; }
  // Any thread. It may become more when memory of a GPU is made known.
  std::string degraded_reason() const;
  uint64_t rejected_connections() const { return rejected_; }
  // See Decision::flat_reason.
  const std::string& unused_memory_reason() const { return fabric_.decision.flat_reason; }
  // Any thread. The rails in use, also those that carry nothing because there is only one rank.
  std::vector<rails::RailTotals> Rails() const;
  // The port of the metrics page; 0 when there is none.
  int metrics_port() const { return metrics_ != nullptr ? metrics_->port() : 0; }

 private:
  Communicator() = default;
  static absl::StatusOr<std::unique_ptr<Communicator>> Start(CommunicatorOptions options);
  // Steps of the start. Of a communicator that is made of another, pins that it cannot follow are
  // logged and dropped.
  void LogStart(const Logger& log) const;
  absl::Status UseSharedMemory();
  absl::Status StartTuner(std::vector<tuner::Pin> pins, bool made_of_another, const Logger& log);
  void PublishMetrics(const Logger& log);

  size_t Ranks() const { return static_cast<size_t>(world_size_); }
  // What is being done, for metrics and messages; `bytes` as in metrics.
  struct Work {
    collectives::Collective collective;
    collectives::Algorithm algorithm;
    size_t bytes;
    collectives::Call call;
    tuner::Autotuner::Turn turn = {};  // of what the tuner was asked for
  };
  using Shared = absl::FunctionRef<absl::Status(shm::Group& group, const shm::Patience& patience)>;
  using Messages = absl::FunctionRef<absl::Status(collectives::Messenger& messenger)>;
  using InPlaces = absl::FunctionRef<absl::Status(Hierarchy& hierarchy)>;

  // Of collectives of ranks that all share memory: sends and receives are messages there as well.
  static bool IsDoneInMemory(collectives::Collective collective) {
    return collective != collectives::Collective::kSendReceive;
  }
  // What does it over messages, among all ranks or among places (tuner.h).
  template <class Function>
  static Function AmongAll(const Work& work) {
    return collectives::FunctionOf<Function>(work.collective, work.algorithm);
  }
  template <class Function>
  static Function AmongPlaces(const Work& work) {
    return collectives::FunctionOf<Function>(work.collective, work.turn.choice.among_places);
  }

  // The next collective, with the algorithm that does it over messages. Where all ranks have the
  // same order of calls, since each may be chosen otherwise than the one before.
  Work Choose(collectives::Call::Arguments arguments, size_t bytes);

  Measurers MeasuredRanks() const;
  // How many others can have a connection to this rank at once: those of RDMA pin memory.
  int MostPeers() const;
  absl::Status CheckPins(const std::vector<tuner::Pin>& pins, const tuner::Network& network) const;

  // Does it: with a text of its own for shared memory, and one for places that have it, or with
  // messages there as well.
  absl::Status Run(const Work& work, Shared shared, InPlaces in_places, Messages messages);
  absl::Status Run(const Work& work, Shared shared, Messages messages);
  absl::Status Run(const Work& work, Messages messages);
  absl::Status Exchange(const Work& work, Messages messages);
  // Numbers it, measures it and gives its errors their context.
  absl::Status Measured(const Work& work, absl::FunctionRef<absl::Status()> run);
  // It took so long: learns from it, together with all ranks where it is time for that.
  absl::Status Learn(const Work& work, double seconds);
  // Fails if another rank is known to call something else.
  absl::Status Begin(const Work& work);
  shm::Patience SharedPatience() const;
  // Of the ranks that share memory with this one, and null where there are none.
  shm::Group* SharedMemoryHere();
  // Makes the job's verdict of a failure of this rank.
  // `report`: where the ranks are; "" if nobody asked.
  absl::Status Fail(absl::string_view what, const absl::Status& cause,
                    absl::string_view report = "") const;
  // Any thread: what has gone between this rank and others, in all.
  std::vector<Flow> Flows() const;
  Traffic Moved();
  // Of it, through memory that ranks share; nothing where they share none.
  std::optional<Traffic> InMemory() const;
  std::unique_ptr<HangReporter> MakeHangReporter(const std::string& group, const Logger& log) const;
  metrics::Snapshot Read() const;
  Registration RegisterGpu(absl::Span<const std::byte> memory, const device::Memory& gpu) const;
  // Any thread: what the ports of RDMA rails have counted, from sysfs.
  std::vector<metrics::PortSnapshot> Ports() const;

  // A new one of these ranks, which meet at the first one's, and of others if there are more.
  struct Meeting {
    UniqueId place;
    std::optional<net::Fd> listener;  // of the first one
    std::vector<int> members;         // of this communicator, in their new order
    int world_size = 0;               // with the others
    bool sound = false;               // the others' failure ends it too
    SetupOptions setup;
  };
  absl::StatusOr<std::unique_ptr<Communicator>> Meet(Meeting meeting,
                                                     const MakingOptions& options) const;
  // Why ranks wait in vain for all of these; OK while they may come.
  absl::Status WhyHopeless(const std::vector<int>& members, bool sound) const;
  absl::Status WhyAborted() const;
  // The job's verdict, as this rank's calls return it.
  absl::Status WhyFailed() const;
  // Says goodbye, once all that this rank has sent is known to have arrived, and waits for the
  // others until the deadline. Returns whether nobody needs this rank any more.
  bool Depart(absl::Time deadline);
  absl::StatusOr<std::unique_ptr<Lane>> StartLane() const;
  Lane* lane() const {
    const std::lock_guard<std::mutex> lock(lane_mutex_);
    return lane_.get();
  }

  const pid_t process_ = ::getpid();
  SetupOptions setup_;
  std::unique_ptr<Staging> staging_ = std::make_unique<Staging>();  // until it departs
  const std::shared_ptr<KnownGpus> known_gpus_ = std::make_shared<KnownGpus>();
  bool over_verbs_ = false;                 // all messages are
  std::optional<fabric::RootFiles> files_;  // nothing when they cannot be read
  net::IpAddress address_;                  // of this process, for others
  int rank_ = 0;
  int world_size_ = 1;
  std::string self_;  // "rank 2 (pod a on node b)"
  std::string of_;    // "communicator 'tp': " where it has a name
  std::string transport_;
  uint64_t rejected_ = 0;
  absl::Status failure_;
  std::atomic<bool> aborted_ = false;
  bool departed_ = false;
  mutable std::mutex awaiting_;  // guards the peers of the last transfers
  std::vector<int> awaited_;
  Clock clock_;
  metrics::CollectiveStats stats_;
  recorder::FlightRecorder recorder_;

  // In the order in which they need each other.
  Fabric fabric_;
  metrics::Start start_;
  std::unique_ptr<bootstrap::Watch> watch_;
  std::unique_ptr<rails::Mesh> mesh_;
  // Whether a wait that has used up its patience goes on: it is for ranks that have not called yet.
  const std::function<bool()> go_on_ = [this] {
    return hang_reporter_->Ask(*watch_).waits_for_callers;
  };
  std::unique_ptr<Patient> patient_;       // of the mesh
  std::unique_ptr<shm::Group> group_;      // with shared memory, in place of the mesh
  std::unique_ptr<shm::Mailbox> mailbox_;  // with the group
  std::unique_ptr<HangReporter> hang_reporter_;
  std::unique_ptr<Hierarchy> hierarchy_;  // with a mesh of places that share memory
  mutable std::mutex learning_;           // guards the autotuner and its trials
  std::optional<tuner::Autotuner> autotuner_;
  mutable std::mutex lane_mutex_;  // guards who does transfers, from the first one on
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<metrics::Exporter::Registration> metrics_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_COMMUNICATOR_H_
