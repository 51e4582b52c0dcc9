// SPDX-License-Identifier: Apache-2.0
//
// The last operations of a communicator, for whoever wants to know later what happened, or now what
// goes on. Noting one takes a few nanoseconds and no lock: each has a place in a ring, written by
// the thread that does the operations, whose first word says whether the others belong together.
#ifndef RAILHEAD_RUNTIME_RECORDER_FLIGHT_RECORDER_H_
#define RAILHEAD_RUNTIME_RECORDER_FLIGHT_RECORDER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "runtime/base/traffic.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/collective.h"

namespace railhead::recorder {

enum class State : uint8_t { kRunning, kDone, kFailed };
inline constexpr std::array<const char*, 3> kStateNames = {"running", "done", "failed"};
inline const char* Name(State state) { return kStateNames[static_cast<size_t>(state)]; }

struct Operation {
  uint64_t sequence = 0;  // its place among all of this rank, from 1
  // From 0. Sends and receives count apart, because not all ranks take part in them: so the n-th
  // collective is the same on all.
  uint64_t number = 0;
  collectives::Collective collective = collectives::Collective::kAllReduce;
  collectives::Algorithm algorithm = collectives::Algorithm::kRing;
  collectives::Call call;
  uint64_t bytes = 0;  // as metrics count them
  State state = State::kRunning;
  absl::Time start;  // of MonotonicNow
  absl::Time end;    // unless it runs
  Traffic moved;     // in it; while it runs, what had moved before it
};

class FlightRecorder {
 public:
  static constexpr size_t kKept = 256;

  // By one thread at a time, in turn; `now` in nanoseconds of the monotonic clock, `moved` counts
  // over the life of the communicator. Begin returns the operation's number.
  uint64_t Begin(collectives::Collective collective, collectives::Algorithm algorithm,
                 collectives::Call call, uint64_t bytes, int64_t now, const Traffic& moved);
  void End(State state, int64_t now, const Traffic& moved);

  // Any thread. The oldest first.
  std::vector<Operation> Read() const;
  std::optional<Operation> Last() const;
  // How many collectives have begun, sends and receives apart.
  uint64_t collectives() const { return collectives_.load(std::memory_order_relaxed); }

 private:
  struct alignas(64) Entry {
    // Sequence, collective, algorithm and phase, from the highest bits down.
    std::atomic<uint64_t> head{0};
    std::atomic<uint64_t> number{0};
    std::atomic<uint64_t> call{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<int64_t> start{0};  // ns of the monotonic clock
    std::atomic<int64_t> end{0};
    std::atomic<uint64_t> sent{0};
    std::atomic<uint64_t> received{0};
  };
  static_assert(sizeof(Entry) == 64);

  static std::optional<Operation> ReadEntry(const Entry& entry);

  const std::unique_ptr<std::array<Entry, kKept>> entries_ =
      std::make_unique<std::array<Entry, kKept>>();
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> collectives_{0};
  uint64_t transfers_ = 0;
};

}  // namespace railhead::recorder

#endif  // RAILHEAD_RUNTIME_RECORDER_FLIGHT_RECORDER_H_
