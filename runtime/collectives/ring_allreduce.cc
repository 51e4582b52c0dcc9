// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ring_allreduce.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace railhead::collectives {
namespace {

// A handful of segments keeps the ring busy; more only cost headers.
constexpr size_t kMostSegments = 8;
// Segments are not cut smaller than this many values (128 KiB).
constexpr size_t kLeastSegment = 32768;

// A range of values.
struct Range {
  size_t begin = 0;
  size_t size = 0;
};

// The ring's timetable for one rank: which values it sends and receives in which step. Steps count
// from 0 to 2(n-1); the first n-1 reduce, the rest distribute.
class Timetable {
 public:
  Timetable(int rank, int world_size, size_t count)
      : rank_(static_cast<size_t>(rank)), ranks_(static_cast<size_t>(world_size)), count_(count) {
    const size_t largest_part = (count + ranks_ - 1) / ranks_;
    segment_ = std::max(kLeastSegment, (largest_part + kMostSegments - 1) / kMostSegments);
    segments_ = std::max<size_t>(1, (largest_part + segment_ - 1) / segment_);
  }

  size_t segments() const { return segments_; }
  size_t reducing_steps() const { return ranks_ - 1; }
  size_t total() const { return 2 * (ranks_ - 1) * segments_; }

  // The n-th segment that this rank sends or receives, counting through all steps. The part that is
  // received in a step is the part that is sent in the next one.
  Range Sent(size_t n) const { return Segment(PartOf(n / segments_), n % segments_); }
  Range Received(size_t n) const { return Segment(PartOf(n / segments_ + 1), n % segments_); }
  bool Reduces(size_t n) const { return n / segments_ < reducing_steps(); }

 private:
  size_t PartOf(size_t step) const { return (rank_ + 2 * ranks_ - step) % ranks_; }

  Range Segment(size_t part, size_t segment) const {
    // The first `count % n` parts are one value longer.
    const size_t base = count_ / ranks_;
    const size_t longer = count_ % ranks_;
    const size_t part_begin = part * base + std::min(part, longer);
    const size_t part_size = base + (part < longer ? 1 : 0);
    const size_t begin = std::min(part_size, segment * segment_);
    return {part_begin + begin, std::min(segment_, part_size - begin)};
  }

  size_t rank_;
  size_t ranks_;
  size_t count_;
  size_t segment_ = 0;
  size_t segments_ = 0;
};

}  // namespace

absl::Status RingAllReduce(Messenger& messenger, int rank, int world_size,
                           const reduce::Reduction& reduction, const std::byte* send,
                           std::byte* receive, size_t count) {
  if (count == 0) return absl::OkStatus();
  if (world_size == 1) {
    reduce::Reduce(reduction, {send}, receive, count, reduce::Stores::kNormal);
    return absl::OkStatus();
  }
  const size_t element = reduce::SizeOf(reduction.type);
  const Timetable timetable(rank, world_size, count);
  const int next = (rank + 1) % world_size;
  const int previous = (rank + world_size - 1) % world_size;
  const size_t segments = timetable.segments();
  // A mean is a sum until the last rank has added its values.
  reduce::Reduction partial = reduction;
  partial.divisor = 1;
  const size_t last_reducing = (timetable.reducing_steps() - 1) * segments;

  // Buffers are posted at most two steps ahead of the sends, so these tickets suffice. Empty
  // segments (fewer values than ranks) are not sent at all and count as received.
  struct Receipt {
    bool empty = true;
    Messenger::Ticket ticket = 0;
  };
  std::array<Receipt, 3 * kMostSegments> receipts;

  size_t sent = 0;
  size_t posted = 0;
  while (sent < timetable.total() || posted < timetable.total() || !messenger.Idle()) {
    for (; posted < std::min(timetable.total(), sent + 2 * segments); ++posted) {
      const Range range = timetable.Received(posted);
      Receipt& receipt = receipts[posted % receipts.size()];
      receipt = Receipt{};
      if (range.size == 0) continue;
      ReceiveBuffer buffer;
      buffer.data = receive + range.begin * element;
      buffer.size = range.size * element;
      if (timetable.Reduces(posted)) {
        buffer.operand = send + range.begin * element;
        buffer.reduction = posted < last_reducing ? &partial : &reduction;
      }
      receipt = {false, messenger.PostReceive(previous, buffer)};
    }
    const size_t before = sent;
    for (; sent < timetable.total(); ++sent) {
      // Everything but the first part is what came in one step earlier.
      const bool own = sent < segments;
      if (!own) {
        if (sent - segments >= posted) break;  // skipping empty segments can run ahead
        const Receipt& needed = receipts[(sent - segments) % receipts.size()];
        if (!needed.empty && !messenger.ReceiveDone(previous, needed.ticket)) break;
      }
      const Range range = timetable.Sent(sent);
      if (range.size == 0) continue;
      const std::byte* from = own ? send : receive;
      messenger.PostSend(next,
                         absl::MakeConstSpan(from + range.begin * element, range.size * element));
    }
    // What was sent may have made room for more buffers; only then is there nothing to do but wait.
    if (sent != before && posted < timetable.total()) continue;
    if (messenger.Idle()) continue;
    if (absl::Status progress = messenger.Progress(); !progress.ok()) return progress;
  }
  return absl::OkStatus();
}

}  // namespace railhead::collectives
