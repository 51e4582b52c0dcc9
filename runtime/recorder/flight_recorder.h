// SPDX-License-Identifier: Apache-2.0
//
// Flight recorder: the last operations of a communicator, for hang reports and the file after a
// failure. Recording takes nanoseconds and no lock: each operation has an entry in a ring, written
// by the thread that runs operations; its first word validates the others.
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
  uint64_t sequence = 0;  // index among all operations of this rank, from 1
  // From 0, collectives and transfers separately, because not all ranks take part in transfers: so
  // the n-th collective is the same on all ranks.
  uint64_t number = 0;
  collectives::Collective collective = collectives::Collective::kAllReduce;
  collectives::Algorithm algorithm = collectives::Algorithm::kRing;
  collectives::Call call;
  uint64_t bytes = 0;  // as counted in metrics
  State state = State::kRunning;
  absl::Time start;  // of MonotonicNow
  absl::Time end;    // unless running
  Traffic moved;     // during the operation; while it runs, the total before it
};

class FlightRecorder {
 public:
  static constexpr size_t kKept = 256;

  // Call from one thread at a time, alternating; `now` in nanoseconds of the monotonic clock,
  // `moved` totals since the communicator's start. Begin returns the operation's number.
  uint64_t Begin(collectives::Collective collective, collectives::Algorithm algorithm,
                 collectives::Call call, uint64_t bytes, int64_t now, const Traffic& moved);
  void End(State state, int64_t now, const Traffic& moved);

  // Thread-safe. Oldest first.
  std::vector<Operation> Read() const;
  std::optional<Operation> Last() const;
  // Number of collectives begun, without transfers.
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
