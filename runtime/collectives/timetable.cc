// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/timetable.h"

#include <algorithm>

namespace railhead::collectives {
namespace {

// Parts are not cut into less; what a segment costs besides its bytes would show.
constexpr size_t kLeastSegment = size_t{128} << 10U;
// A train of few, long segments leaves most ranks waiting for the first or after the last.
constexpr size_t kLeastTrainSegment = size_t{32} << 10U;
constexpr size_t kLargestTrainSegment = size_t{256} << 10U;
constexpr size_t kLine = 64;

size_t DivideUp(size_t value, size_t unit) { return (value + unit - 1) / unit; }

}  // namespace

Timetable::Timetable(const Options& options) : options_(options) {
  const size_t largest_part = options.parts.largest();
  const size_t least = kLeastSegment / options.element;
  const size_t most = std::max(least, options.largest_segment / options.element);
  segment_ = std::min(std::clamp(DivideUp(largest_part, kMostSegments), least, most),
                      std::max<size_t>(1, largest_part));
  const size_t in_all = DivideUp(largest_part, segment_);
  segments_ = std::clamp<size_t>(in_all, 1, kMostSegments);
  rounds_ = DivideUp(in_all, segments_);
}

Range Timetable::Segment(size_t part, size_t n) const {
  const Range whole = options_.parts[part];
  const size_t round = n / (options_.steps * segments_);
  const size_t index = round * segments_ + n % segments_;
  const size_t begin = std::min(whole.size, index * segment_);
  return {whole.begin + begin, std::min(segment_, whole.size - begin)};
}

Train::Train(size_t bytes)
    : bytes_(bytes),
      segment_(std::clamp(DivideUp(DivideUp(bytes, kMostSegments), kLine) * kLine,
                          kLeastTrainSegment, kLargestTrainSegment)) {}

Range Train::At(size_t n) const {
  const size_t begin = n * segment_;
  return {begin, std::min(segment_, bytes_ - begin)};
}

}  // namespace railhead::collectives
