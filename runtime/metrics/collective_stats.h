// SPDX-License-Identifier: Apache-2.0
//
// Counts and durations of collectives, by algorithm and size class: recorded by the communicator,
// read for the metrics page.
#ifndef RAILHEAD_RUNTIME_METRICS_COLLECTIVE_STATS_H_
#define RAILHEAD_RUNTIME_METRICS_COLLECTIVE_STATS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/collectives/collective.h"

namespace railhead::metrics {

inline constexpr std::array<const char*, 4> kSizeClasses = {"<=4KiB", "<=256KiB", "<=4MiB",
                                                            ">4MiB"};
size_t SizeClass(uint64_t bytes);

// Upper bounds of the duration histogram's buckets in seconds; a last bucket is unbounded.
inline constexpr std::array<double, 18> kDurationBounds = {
    50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3,
    50e-3, 100e-3, 250e-3, 500e-3, 1,    2.5,    5,    10,    30};

// Returns the bucket of a duration; durations below 0 are in the first.
size_t DurationBucket(int64_t nanoseconds);

// Counts of one size class of one collective.
struct CollectiveCounts {
  uint64_t operations = 0;
  uint64_t bytes = 0;
  double seconds = 0;
  std::array<uint64_t, kDurationBounds.size() + 1> buckets{};  // not cumulative
};

// One algorithm of one collective, by size class.
struct KindCounts {
  // Their names: other libraries have other collectives and algorithms.
  std::string collective;
  std::string algorithm;
  std::string comm;  // name of its communicator; "" if none
  std::array<CollectiveCounts, kSizeClasses.size()> classes;
};

class CollectiveStats {
 public:
  // Use from one thread at a time.
  void Record(collectives::Collective collective, collectives::Algorithm algorithm, uint64_t bytes,
              int64_t nanoseconds);

  // Thread-safe. Returns those with calls.
  std::vector<KindCounts> Read() const;

 private:
  struct Counters {
    std::atomic<uint64_t> operations{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> nanoseconds{0};
    std::array<std::atomic<uint64_t>, kDurationBounds.size() + 1> buckets{};
  };
  using Classes = std::array<Counters, kSizeClasses.size()>;
  std::array<std::array<Classes, collectives::kAlgorithmNames.size()>,
             collectives::kCollectiveNames.size()>
      counters_;
};

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_COLLECTIVE_STATS_H_
