// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/snapshot.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace railhead::metrics {
namespace {

// The other reading is the newer one.
void Add(const PortSnapshot& other, PortSnapshot& sum) { sum.counters = other.counters; }

void Add(const GpuDirectSnapshot& other, GpuDirectSnapshot& sum) {
  sum.way = std::min(sum.way, other.way);
}

void Add(const KindCounts& other, KindCounts& sum) {
  for (size_t i = 0; i < sum.classes.size(); ++i) {
    const CollectiveCounts& from = other.classes[i];
    CollectiveCounts& to = sum.classes[i];
    to.operations += from.operations;
    to.bytes += from.bytes;
    to.seconds += from.seconds;
    for (size_t b = 0; b < to.buckets.size(); ++b) to.buckets[b] += from.buckets[b];
  }
}

void Add(const UntimedOperations& other, UntimedOperations& sum) {
  sum.operations += other.operations;
}

void Add(const WaitTime& other, WaitTime& sum) { sum.seconds += other.seconds; }

void Add(const ProfilerEvents& other, ProfilerEvents& sum) {
  sum.started += other.started;
  sum.stopped += other.stopped;
}

void Add(const SilentPeer& other, SilentPeer& sum) {
  sum.seconds = std::max(sum.seconds, other.seconds);
}

// Adds each to the one that is like it, or behind them all.
template <class T, class Alike>
void AddAll(const std::vector<T>& others, std::vector<T>& sums, Alike alike) {
  for (const T& other : others) {
    const auto same =
        std::find_if(sums.begin(), sums.end(), [&](const T& sum) { return alike(sum, other); });
    if (same == sums.end()) {
      sums.push_back(other);
    } else {
      Add(other, *same);
    }
  }
}

}  // namespace

void Add(const ProfilerSnapshot& other, ProfilerSnapshot& sum) {
  AddAll(other.untimed, sum.untimed, [](const UntimedOperations& a, const UntimedOperations& b) {
    return a.collective == b.collective;
  });
  AddAll(other.waits, sum.waits, [](const WaitTime& a, const WaitTime& b) {
    return a.collective == b.collective && a.size_class == b.size_class &&
           a.direction == b.direction && a.cause == b.cause;
  });
  AddAll(other.events, sum.events,
         [](const ProfilerEvents& a, const ProfilerEvents& b) { return a.event == b.event; });
  AddAll(other.silent, sum.silent, [](const SilentPeer& a, const SilentPeer& b) {
    return a.comm == b.comm && a.peer == b.peer;
  });
  sum.dropped += other.dropped;
  sum.silent_peers += other.silent_peers;
}

void Add(const Snapshot& other, Snapshot& sum) {
  if (sum.degraded_reason.empty()) {
    sum.degraded_reason = other.degraded_reason;
  } else if (!other.degraded_reason.empty() && other.degraded_reason != sum.degraded_reason) {
    absl::StrAppend(&sum.degraded_reason, "; ", other.degraded_reason);
  }
  if (!sum.start.has_value()) sum.start = other.start;
  sum.rejected_connections += other.rejected_connections;
  rails::Add(other.rails, sum.rails);
  AddAll(other.ports, sum.ports, [](const PortSnapshot& a, const PortSnapshot& b) {
    return rails::ToString(a.name) == rails::ToString(b.name);
  });
  AddAll(other.gpu_direct, sum.gpu_direct,
         [](const GpuDirectSnapshot& a, const GpuDirectSnapshot& b) {
           return rails::ToString(a.name) == rails::ToString(b.name);
         });
  AddAll(other.collectives, sum.collectives, [](const KindCounts& a, const KindCounts& b) {
    return a.collective == b.collective && a.algorithm == b.algorithm && a.comm == b.comm;
  });
  Add(other.profiler, sum.profiler);
}

}  // namespace railhead::metrics
