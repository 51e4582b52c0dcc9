// SPDX-License-Identifier: Apache-2.0
#include "cli/all_reduce_time.h"

#include <algorithm>
#include <bit>

#include "absl/types/span.h"

namespace railhead::cli {
namespace {

// Latencies in microseconds.
struct Protocol {
  absl::string_view name;
  double start;           // b
  double inside;          // a
  double between;         // n
  double bytes_per_byte;  // p
};

// A step of a ring within a node takes at least the time to post a send to the network, 1 us.
constexpr Protocol kRing[] = {
    {"LL", 6.6, 1.0, 2.7, 2}, {"LL128", 14, 1.9, 4, 128.0 / 120}, {"Simple", 8.4, 3.4, 14, 1}};
constexpr Protocol kTree[] = {
    {"LL", 6.8, 0.6, 5, 2}, {"LL128", 14, 1.25, 8.5, 128.0 / 120}, {"Simple", 8.4, 4, 14, 1}};
constexpr Protocol kSharp[] = {{"Simple", 0, 3.7, 31, 1}};
constexpr double kSharpPerGpu = 0.4;  // of each GPU whose data is added within a node
constexpr double kMicrosecond = 1e-6;

// Bytes and steps of an algorithm, which do not depend on the protocol.
struct Work {
  double node_bytes = 0;
  double gpu_bytes = 0;
  double steps_inside = 0;
  double steps_between = 0;
  double other_microseconds = 0;
};

AllReduceTime Fastest(const AllReduceCase& all_reduce, const Work& work,
                      absl::Span<const Protocol> protocols) {
  AllReduceTime best;
  const double transfer = std::max(work.node_bytes / all_reduce.node_bytes_per_second,
                                   work.gpu_bytes / all_reduce.gpu_bytes_per_second);
  for (const Protocol& protocol : protocols) {
    const double latency = protocol.start + work.steps_inside * protocol.inside +
                           work.steps_between * protocol.between + work.other_microseconds;
    const double seconds = latency * kMicrosecond + transfer * protocol.bytes_per_byte;
    if (best.protocol.empty() || seconds < best.seconds) best = {seconds, protocol.name};
  }
  return best;
}

}  // namespace

AllReduceTimes EstimateAllReduce(const AllReduceCase& all_reduce) {
  const double nodes = all_reduce.nodes;
  const double gpus = all_reduce.gpus_per_node;
  const double ranks = nodes * gpus;
  const double ring_bytes = 2 * (ranks - 1) / ranks * all_reduce.bytes;
  const double inside_bytes = 2 * (gpus - 1) / gpus * all_reduce.bytes;
  AllReduceTimes times;
  times.ring = Fastest(all_reduce,
                       {.node_bytes = all_reduce.nodes > 1 ? ring_bytes : 0,
                        .gpu_bytes = ring_bytes,
                        .steps_inside = 2 * (ranks - nodes),
                        .steps_between = 2 * (nodes - 1)},
                       kRing);
  if (all_reduce.nodes < 2) return times;
  const int depth = static_cast<int>(std::bit_width(static_cast<unsigned>(all_reduce.nodes))) - 1;
  times.tree = Fastest(all_reduce,
                       {.node_bytes = all_reduce.bytes * (all_reduce.nodes == 2 ? 1 : 2),
                        .gpu_bytes = inside_bytes,
                        .steps_inside = 2 * (gpus - 1),
                        .steps_between = 2.0 * depth},
                       kTree);
  times.sharp = Fastest(all_reduce,
                        {.node_bytes = all_reduce.bytes,
                         .gpu_bytes = inside_bytes,
                         .steps_inside = all_reduce.gpus_per_node > 1 ? 2.0 : 0.0,
                         .steps_between = 1,
                         .other_microseconds = 2 * kSharpPerGpu * (gpus - 1)},
                        kSharp);
  return times;
}

std::optional<int> SharpPaysFrom(AllReduceCase all_reduce) {
  std::optional<int> from;
  for (int nodes = kMostSharpNodes; nodes >= 2; --nodes) {
    all_reduce.nodes = nodes;
    const AllReduceTimes times = EstimateAllReduce(all_reduce);
    if (times.sharp->seconds >= std::min(times.ring.seconds, times.tree->seconds)) break;
    from = nodes;
  }
  return from;
}

}  // namespace railhead::cli
