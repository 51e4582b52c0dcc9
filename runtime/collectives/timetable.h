// SPDX-License-Identifier: Apache-2.0
//
// Segments of ring collectives: which values travel in which step.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_TIMETABLE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_TIMETABLE_H_

#include <cstddef>
#include <cstdint>

#include "runtime/base/parts.h"

namespace railhead::collectives {

// A few segments keep the ring busy; more only add headers.
inline constexpr size_t kMostSegments = 8;

// Each rank has a part of the values, and all parts travel at once: in every step a rank sends one
// part, and receives the one that it sends in the next. Parts travel in segments, so that one is
// added while the next is in flight. Both neighbours number the segments alike.
class Timetable {
 public:
  struct Options {
    Parts parts;
    size_t first = 0;  // part that this rank sends in step 0
    size_t steps = 0;
    size_t element = 1;  // bytes per value
    // Longer parts add rounds of all steps; it bounds the memory of segments in transit.
    size_t largest_segment = SIZE_MAX;  // bytes
  };
  explicit Timetable(const Options& options);

  // Number of segments that a rank sends, and receives. Some may be empty.
  size_t total() const { return rounds_ * options_.steps * segments_; }
  // Segments per step.
  size_t segments() const { return segments_; }
  // Values in the largest segment.
  size_t segment_size() const { return segment_; }

  size_t Step(size_t n) const { return n / segments_ % options_.steps; }
  // The n-th segment that this rank sends or receives. Segments sent after step 0 were received
  // `segments()` earlier.
  Range Sent(size_t n) const { return Segment(PartOf(Step(n)), n); }
  Range Received(size_t n) const { return Segment(PartOf(Step(n) + 1), n); }

 private:
  size_t PartOf(size_t step) const {
    return (options_.first + 2 * options_.parts.ranks() - step) % options_.parts.ranks();
  }
  Range Segment(size_t part, size_t n) const;

  Options options_;
  size_t segment_ = 0;
  size_t segments_ = 0;
  size_t rounds_ = 0;
};

// Segments of bytes that travel from one end of the ring to the other as a pipeline, so that all
// ranks work at once.
class Train {
 public:
  explicit Train(size_t bytes);

  // Number of segments.
  size_t size() const { return (bytes_ + segment_ - 1) / segment_; }
  // Bytes of the largest segment; a multiple of every type's size.
  size_t segment_size() const { return segment_; }
  // The n-th segment, in bytes.
  Range At(size_t n) const;

 private:
  size_t bytes_;
  size_t segment_;
};

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_TIMETABLE_H_
