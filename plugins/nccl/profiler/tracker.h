// SPDX-License-Identifier: Apache-2.0
//
// What NCCL's profiler events say: calls by collective, algorithm and size, with their durations;
// what their transfers waited for; and which ranks are silent. Pure: without NCCL's types, threads
// and clock. Profiler (profiler.h) locks it and passes the time, in ns of the monotonic clock.
//
//   Communicator > call (a collective, or a send or receive) > transfer (of a channel, to or from a
//   peer) > step (a chunk of its data). A kernel is a child of a call, too.
//
// NCCL ends a call's event when it has queued the call, and its transfers start and end later, each
// at its own time. A call has ended once all its transfers have, and no other starts for a moment.
// Its duration begins when the GPU has data to send; on a rank that first needs data of others,
// when it waits for that. With kernels, it is theirs.
//
// A transfer's steps are in a pipeline, and the oldest says what the transfer waits for. Waiting
// times are sums over transfers.
//
// Handles are numbers that NCCL keeps and may pass late, twice, or from another process; those that
// are unknown do nothing. The number of events is bounded: without room, one is dropped and
// counted.
#ifndef RAILHEAD_PLUGINS_NCCL_PROFILER_TRACKER_H_
#define RAILHEAD_PLUGINS_NCCL_PROFILER_TRACKER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plugins/nccl/profiler/names.h"
#include "plugins/nccl/profiler/slot_pool.h"
#include "runtime/metrics/collective_stats.h"
#include "runtime/metrics/snapshot.h"

namespace railhead::nccl {

using Nanoseconds = int64_t;
using EventHandle = uint64_t;  // 0: none

enum class Direction : uint8_t { kSend, kReceive };

// A step's wait, in the order of its pipeline: three stages of a send, then three of a receive.
enum class Stage : uint8_t {
  kSendGpu,      // this rank's GPU has no data yet
  kSendPeer,     // the receiver is not ready
  kSendNetwork,  // the data is on its way
  kReceiveData,  // no data has come
  kReceiveFlush,
  kReceiveGpu,  // this rank's GPU has not taken it
};
inline constexpr size_t kStages = 6;

// A peer of a communicator that has become silent, or sends again.
struct Silence {
  std::string communicator;  // for messages
  int peer = 0;
  Nanoseconds duration = 0;
};

// Not thread-safe.
class Tracker {
 public:
  struct Limits {
    size_t communicators = 1 << 12;
    size_t calls = 1 << 14;
    size_t transfers = 1 << 16;
    size_t steps = 1 << 16;
    size_t others = 1 << 14;  // kernels; events that only another profiler wants
  };
  explicit Tracker(Limits limits);
  Tracker() : Tracker(Limits()) {}

  struct Communicator {
    std::string name;  // "": none; a label of metrics
    std::string id;    // for messages
    int ranks = 0;     // 0: unknown
  };
  EventHandle Open(Communicator communicator);
  // A rank of the communicator, if its number of ranks is unknown.
  void NoteRank(EventHandle communicator, int rank);
  // Ends it: forgets its calls that have not ended. Returns false if it is unknown.
  bool Close(EventHandle communicator, Nanoseconds now);

  // `bytes`: of the elements that NCCL counts.
  EventHandle StartCall(EventHandle communicator, CallName name, uint64_t bytes, Nanoseconds now);
  EventHandle StartTransfer(EventHandle call, int peer, Direction direction, Nanoseconds now);
  // A transfer of another process's call.
  EventHandle StartForeignTransfer(int peer, Direction direction, Nanoseconds now);
  // Repeated with the same number before the step has a stage, returns the same handle.
  EventHandle StartStep(EventHandle transfer, int number, Nanoseconds now);
  // `gpu_time`: nullopt if unknown; then `now` counts.
  EventHandle StartKernel(EventHandle call, std::optional<uint64_t> gpu_time, Nanoseconds now);
  // An event that only another profiler wants.
  EventHandle StartOther(Nanoseconds now);
  // Steps only go forward.
  void SetStage(EventHandle step, Stage stage, Nanoseconds now);
  void SetKernelEnd(EventHandle kernel, uint64_t gpu_time);
  // Returns false if it has stopped before, or is unknown.
  bool Stop(EventHandle event, Nanoseconds now);

  // The caller's pointer for a communicator or an event: the handle of another profiler. Null if
  // there is none. Calls, and events of StartOther, have theirs for a while after they stop.
  void* Attached(EventHandle event);
  void Attach(EventHandle event, void* pointer);

  // Counts calls that have ended, and forgets what is no longer needed. Call it every second.
  void Sweep(Nanoseconds now);
  // The peers that have become silent since the last time, and those that are no longer.
  struct Changes {
    std::vector<Silence> silent;
    std::vector<Silence> resumed;
  };
  Changes CheckSilence(Nanoseconds now);
  // Writes all counts.
  void Report(Nanoseconds now, metrics::Snapshot& snapshot);

 private:
  enum class Kind : uint8_t { kNone, kCommunicator, kCall, kTransfer, kStep, kKernel, kOther };
  static constexpr Nanoseconds kNever = INT64_MIN;

  struct Comm {
    Communicator facts;
    size_t label = 0;                 // of labels_
    int highest_rank = 0;             // seen
    std::vector<Nanoseconds> came;    // when data of a peer came last, by peer
    std::deque<EventHandle> stopped;  // calls that have, in that order
    void* attached = nullptr;
  };
  struct Call {
    EventHandle comm = 0;
    CallName name;
    uint64_t bytes = 0;
    size_t cell = 0;  // of waits_
    bool has_stopped = false;
    int open = 0;      // children
    int children = 0;  // so far
    bool sends = false;
    Nanoseconds started = 0;
    Nanoseconds changed = 0;               // it, or a child
    Nanoseconds ready = kNever;            // its first data to send
    Nanoseconds came = kNever;             // its first data
    Nanoseconds waited = kNever;           // first, for data
    Nanoseconds transfer_end = kNever;     // of the last one
    std::optional<uint64_t> kernel_start;  // of the first one
    std::optional<uint64_t> kernel_end;    // of the last one
    void* attached = nullptr;
  };
  struct Transfer {
    EventHandle call = 0;  // 0: in another process
    EventHandle comm = 0;
    size_t cell = 0;
    int peer = 0;
    Direction direction = Direction::kSend;
    std::array<int, 3> steps{};  // by stage
    Nanoseconds since = 0;       // waiting time before is counted
    Nanoseconds changed = 0;     // its steps
    Nanoseconds quiet = 0;       // since then, no data has come for a step that waits
    // Its open steps, by number: NCCL has no more, and forgets those that it overwrites.
    std::array<EventHandle, 8> open{};
    EventHandle& At(int number) { return open[static_cast<unsigned>(number) % open.size()]; }
    void* attached = nullptr;
  };
  struct Step {
    EventHandle transfer = 0;
    int number = 0;
    int stage = -1;  // of its transfer's three
    void* attached = nullptr;
  };
  struct Kernel {
    EventHandle call = 0;
    uint64_t start = 0;
    uint64_t end = 0;
    bool by_gpu = false;  // its times are the GPU's
    void* attached = nullptr;
  };
  struct Other {
    bool has_stopped = false;
    Nanoseconds changed = 0;
    void* attached = nullptr;
  };
  struct Events {
    uint64_t started = 0;
    uint64_t stopped = 0;
  };
  using PeerKey = std::pair<EventHandle, int>;  // communicator and rank

  static EventHandle Handle(Kind kind, uint64_t key);
  // The pool's object, or null.
  template <class Object>
  static Object* Find(SlotPool<Object>& pool, Kind kind, EventHandle handle);
  template <class Object>
  EventHandle Start(SlotPool<Object>& pool, Kind kind, Object object, Nanoseconds now);
  Events& CountsOf(Kind kind) { return events_[static_cast<size_t>(kind)]; }

  size_t LabelOf(const std::string& name);
  void** AttachedTo(EventHandle event);  // null: unknown event
  uint64_t LargerBuffer(const Call& call);
  void Account(Transfer& transfer, Nanoseconds now);
  void NoteStage(Transfer& transfer, int from, int to, Nanoseconds now);
  void EndStep(EventHandle handle, Nanoseconds now);
  void EndChild(EventHandle call, Nanoseconds now);
  // Whether the call has ended, or will never be heard of again.
  static bool IsSettled(const Call& call, Nanoseconds now);
  void CountCall(const Call& call);
  void ForgetCall(EventHandle handle);
  void SettleFirst(EventHandle comm, Nanoseconds now);
  void MakeRoom(Nanoseconds now);
  void ReleaseOrphans();  // steps and kernels whose parent is gone
  static std::optional<Nanoseconds> DurationOf(const Call& call);
  // Since when the receive has waited in vain; nullopt if it does not.
  std::optional<Nanoseconds> QuietSince(const Transfer& transfer);

  SlotPool<Comm> comms_;
  SlotPool<Call> calls_;
  SlotPool<Transfer> transfers_;
  SlotPool<Step> steps_;
  SlotPool<Kernel> kernels_;
  SlotPool<Other> others_;

  std::vector<std::string> labels_;
  using Key = std::tuple<size_t, uint8_t, uint8_t>;  // label, call, algorithm
  std::map<Key, std::array<metrics::CollectiveCounts, metrics::kSizeClasses.size()>> counts_;
  std::array<uint64_t, kCallNames.size()> untimed_{};
  std::array<std::array<Nanoseconds, kStages>, kCallNames.size() * metrics::kSizeClasses.size()>
      waits_{};
  std::array<Events, 7> events_{};
  uint64_t dropped_ = 0;
  Nanoseconds made_room_ = kNever;
  std::map<PeerKey, Nanoseconds> silent_;  // since when
};

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_PROFILER_TRACKER_H_
