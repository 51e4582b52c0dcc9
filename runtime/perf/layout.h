// SPDX-License-Identifier: Apache-2.0
//
// Buffer layouts of collectives: the values a rank sends, and the source of those it receives.
#ifndef RAILHEAD_RUNTIME_PERF_LAYOUT_H_
#define RAILHEAD_RUNTIME_PERF_LAYOUT_H_

#include <cstddef>
#include <vector>

namespace railhead::perf {

// Content of a buffer: nothing, one part, or a part per rank.
enum class Shape { kNothing, kOne, kPerRank };

// Source of a received part: all ranks' send buffers (reduced), the root's, the previous rank's,
// or, for parts per rank, that rank's.
enum class Source { kReduced, kRoot, kPrevious, kEach };

struct Movement {
  Shape send = Shape::kNothing;
  Shape receive = Shape::kNothing;
  Source source = Source::kEach;
  bool to_root_only = false;
  bool uneven = false;  // parts differ between ranks

  bool divides() const { return send == Shape::kPerRank || receive == Shape::kPerRank; }
};

// One part per rank, consecutive, in values.
struct Parts {
  std::vector<size_t> counts;
  std::vector<size_t> begins;
  size_t total() const { return begins.back() + counts.back(); }
};

// Returns the parts that `owner` has for, or gets from, each rank; `count` values each if even. If
// uneven, each even rank gives half of its values to the next; in all-to-all, where both sides have
// parts, an odd owner's parts are swapped, so that parts match and totals stay.
Parts PartsOf(const Movement& movement, int ranks, int owner, size_t count);

// Returns the values in the buffers of a rank with `parts`.
size_t Values(Shape shape, const Movement& movement, const Parts& parts, int rank, size_t count);

// Returns the offset, in values, of the smaller buffer in the larger one of an in-place call.
size_t InPlaceOffset(const Movement& movement, const Parts& parts, int rank);

inline constexpr int kAllRanks = -1;

// `count` values that are received at `to`: what is at `from` in the send buffer of `source`, or,
// if that is kAllRanks, the reduction over all ranks of what is there.
struct Piece {
  int source = 0;
  size_t from = 0;
  size_t to = 0;
  size_t count = 0;
};

// Returns what `rank` has received after the collective.
std::vector<Piece> Received(const Movement& movement, int ranks, int rank, int root, size_t count);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_LAYOUT_H_
