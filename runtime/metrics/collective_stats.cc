// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/collective_stats.h"

#include <algorithm>

namespace railhead::metrics {
namespace {

// kDurationBounds in nanoseconds.
constexpr auto kBounds = [] {
  std::array<int64_t, kDurationBounds.size()> bounds{};
  for (size_t b = 0; b < bounds.size(); ++b) {
    // The nearest one: bounds are decimal fractions, and not all are exact in binary.
    const double nanoseconds = kDurationBounds[b] * 1e9;
    const auto below = static_cast<int64_t>(nanoseconds);
    bounds[b] = nanoseconds - static_cast<double>(below) < 0.5 ? below : below + 1;
  }
  return bounds;
}();

}  // namespace

size_t SizeClass(uint64_t bytes) {
  if (bytes <= uint64_t{4} << 10) return 0;
  if (bytes <= uint64_t{256} << 10) return 1;
  if (bytes <= uint64_t{4} << 20) return 2;
  return 3;
}

size_t DurationBucket(int64_t nanoseconds) {
  // The shortest operations have the least time for this, and are found first.
  size_t bucket = 0;
  while (bucket < kBounds.size() && nanoseconds > kBounds[bucket]) ++bucket;
  return bucket;
}

void CollectiveStats::Record(collectives::Collective collective, collectives::Algorithm algorithm,
                             uint64_t bytes, int64_t nanoseconds) {
  // The time of day may be set back during an operation.
  const int64_t duration = std::max<int64_t>(nanoseconds, 0);
  Counters& counters =
      counters_[static_cast<size_t>(collective)][static_cast<size_t>(algorithm)][SizeClass(bytes)];
  const auto add = [](std::atomic<uint64_t>& counter, uint64_t value) {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  };
  add(counters.operations, 1);
  add(counters.bytes, bytes);
  add(counters.nanoseconds, static_cast<uint64_t>(duration));
  add(counters.buckets[DurationBucket(duration)], 1);
}

namespace {

CollectiveCounts Read(const auto& counters) {
  CollectiveCounts counts;
  counts.operations = counters.operations.load(std::memory_order_relaxed);
  counts.bytes = counters.bytes.load(std::memory_order_relaxed);
  counts.seconds = static_cast<double>(counters.nanoseconds.load(std::memory_order_relaxed)) * 1e-9;
  for (size_t b = 0; b < counts.buckets.size(); ++b) {
    counts.buckets[b] = counters.buckets[b].load(std::memory_order_relaxed);
  }
  return counts;
}

}  // namespace

std::vector<KindCounts> CollectiveStats::Read() const {
  std::vector<KindCounts> result;
  for (size_t c = 0; c < counters_.size(); ++c) {
    for (size_t a = 0; a < counters_[c].size(); ++a) {
      KindCounts kind;
      kind.collective = Name(static_cast<collectives::Collective>(c));
      kind.algorithm = Name(static_cast<collectives::Algorithm>(a));
      bool happened = false;
      for (size_t i = 0; i < kind.classes.size(); ++i) {
        kind.classes[i] = metrics::Read(counters_[c][a][i]);
        happened = happened || kind.classes[i].operations > 0;
      }
      if (happened) result.push_back(kind);
    }
  }
  return result;
}

}  // namespace railhead::metrics
