// SPDX-License-Identifier: Apache-2.0
//
// Estimates the time of an NCCL all-reduce in rings, in trees, and with SHARP, where InfiniBand
// switches add. Pure arithmetic.
//
// N nodes of g GPUs, R = N g ranks, S bytes. A node transfers B bytes per second in each direction
// over all its rails, a GPU W bytes per second to the GPUs of its node. A protocol sends p bytes
// for each byte of data. Time = latency + p max(bytes of a node / B, bytes of a GPU / W):
//
//           bytes of a node       bytes of a GPU   latency
//   ring    2 (R-1)/R S           2 (R-1)/R S      b + 2 (R-N) a + 2 (N-1) n
//   tree    2 S, S for 2 nodes    2 (g-1)/g S      b + 2 (g-1) a + 2 floor(log2 N) n
//   SHARP   S                     2 (g-1)/g S      2 a + 0.8 us (g-1) + n, without 2 a for g = 1
//
// b is the start, a a step within a node, n a step between nodes; for SHARP, n is the way through
// the switches and back, which does not depend on N. Ring and tree have the protocol that is
// fastest for the size; SHARP has Simple alone.
//
// Sources:
//  - Bytes: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
//    workstations" (2009), for the ring; Sanders, Speck and Traeff, "Two-tree algorithms for full
//    bandwidth broadcast, reduction and scan" (2009): a node is inside one of two trees, each with
//    half of the data, and a leaf of the other; Graham et al., "Scalable Hierarchical Aggregation
//    Protocol (SHArP)" (2016): a node sends its data once and receives the result once.
//  - b, a, n, p: constants and latencies of NCCL's own cost model, src/graph/tuning.cc of NCCL
//    2.30.7, for NVLink within nodes and CollNetDirect.
// They are estimates: congestion, slow GPUs and late ranks are not in them.
#ifndef RAILHEAD_CLI_ALL_REDUCE_TIME_H_
#define RAILHEAD_CLI_ALL_REDUCE_TIME_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace railhead::cli {

// Bandwidth of an H100 or H200 to the GPUs of its node over NVLink: busbw of rings of 8 GPUs.
inline constexpr double kNvlinkGbps = 2960;

struct AllReduceCase {
  int nodes = 2;                                        // at least 1
  int gpus_per_node = 8;                                // at least 1
  double node_bytes_per_second = 0;                     // B
  double gpu_bytes_per_second = kNvlinkGbps * 1e9 / 8;  // W
  double bytes = 0;                                     // S
};

struct AllReduceTime {
  double seconds = 0;
  absl::string_view protocol;  // "LL", "LL128" or "Simple"
};

struct AllReduceTimes {
  AllReduceTime ring;
  // Nullopt on one node, where the network is not used.
  std::optional<AllReduceTime> tree;
  std::optional<AllReduceTime> sharp;
};

AllReduceTimes EstimateAllReduce(const AllReduceCase& all_reduce);

// Returns the number of nodes from which on SHARP takes less time than ring and tree, with the
// other values of `all_reduce`. Nullopt if that is not so for kMostSharpNodes.
inline constexpr int kMostSharpNodes = 65536;
std::optional<int> SharpPaysFrom(AllReduceCase all_reduce);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_ALL_REDUCE_TIME_H_
