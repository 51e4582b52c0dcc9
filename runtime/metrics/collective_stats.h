// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_METRICS_COLLECTIVE_STATS_H_
#define RAILHEAD_RUNTIME_METRICS_COLLECTIVE_STATS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace railhead::metrics {

enum class Collective { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce, kBarrier };

// What people call them, in metrics and messages.
inline constexpr std::array<const char*, 6> kCollectiveNames = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "barrier"};
inline const char* Name(Collective collective) {
  return kCollectiveNames[static_cast<size_t>(collective)];
}

// Collectives are counted by the size of the larger of a rank's two buffers.
inline constexpr std::array<const char*, 4> kSizeClasses = {"<=4KiB", "<=256KiB", "<=4MiB",
                                                            ">4MiB"};
size_t SizeClass(uint64_t bytes);

// Upper bounds of the duration histogram in seconds; one more bucket takes the rest.
inline constexpr std::array<double, 18> kDurationBounds = {
    50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3,
    50e-3, 100e-3, 250e-3, 500e-3, 1,    2.5,    5,    10,    30};

// What one size class of one collective has seen.
struct CollectiveCounts {
  uint64_t operations = 0;
  uint64_t bytes = 0;
  double seconds = 0;
  std::array<uint64_t, kDurationBounds.size() + 1> buckets{};  // not cumulative
};

// By collective and size class.
using AllCounts =
    std::array<std::array<CollectiveCounts, kSizeClasses.size()>, kCollectiveNames.size()>;

// Counts the collectives of one communicator. Record costs a few atomic additions; reading happens
// when somebody scrapes.
class CollectiveStats {
 public:
  void Record(Collective collective, uint64_t bytes, absl::Duration duration);

  // Any thread.
  AllCounts Read() const;

 private:
  struct Counters {
    std::atomic<uint64_t> operations{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> nanoseconds{0};
    std::array<std::atomic<uint64_t>, kDurationBounds.size() + 1> buckets{};
  };
  std::array<std::array<Counters, kSizeClasses.size()>, kCollectiveNames.size()> counters_;
};

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_COLLECTIVE_STATS_H_
