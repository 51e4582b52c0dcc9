// SPDX-License-Identifier: Apache-2.0
//
// Which values travel when around a ring.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_TIMETABLE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_TIMETABLE_H_

#include <cstddef>
#include <cstdint>

#include "runtime/base/parts.h"

namespace railhead::collectives {

// A handful of segments keeps the ring busy; more only cost headers.
inline constexpr size_t kMostSegments = 8;

// Each rank has a part of the values, and all parts travel at once: in every step a rank
// sends one part, and receives the one that it sends in the next step. A part travels in segments,
// so that one is added while the next is under way. Both neighbours count the same segments alike.
class Timetable {
 public:
  struct Options {
    Parts parts;
    size_t first = 0;  // the part that this rank sends in step 0
    size_t steps = 0;
    size_t element = 1;  // bytes of a value
    // Longer parts make further rounds of all steps; whoever keeps segments for a while needs a
    // bound for them.
    size_t largest_segment = SIZE_MAX;  // bytes
  };
  explicit Timetable(const Options& options);

  // How many segments a rank sends, and as many it receives. Some may be empty.
  size_t total() const { return rounds_ * options_.steps * segments_; }
  // Segments in a step.
  size_t segments() const { return segments_; }
  // Values in the largest segment.
  size_t segment_size() const { return segment_; }

  size_t Step(size_t n) const { return n / segments_ % options_.steps; }
  // The n-th segment that this rank sends or receives. What is sent after step 0 was received
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

// Cuts bytes that all travel the same way, from one end of the ring to the other, so that all ranks
// on the way work at once.
class Train {
 public:
  explicit Train(size_t bytes);

  // How many segments there are.
  size_t size() const { return (bytes_ + segment_ - 1) / segment_; }
  // Bytes in the largest; whole values of every type.
  size_t segment_size() const { return segment_; }
  // The n-th segment, in bytes.
  Range At(size_t n) const;

 private:
  size_t bytes_;
  size_t segment_;
};

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_TIMETABLE_H_
