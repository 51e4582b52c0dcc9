// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <memory>
#include <tuple>

#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/arc.h"
#include "runtime/collectives/reducing.h"
#include "runtime/collectives/schedule.h"

namespace railhead::collectives {
namespace {

// For several ranks, with contiguous parts. Each step is one message each way, or two if the parts
// wrap around after those of the last rank.
class Halving final : public Schedule {
 public:
  Halving(size_t rank, const reduce::Reduction& reduction, const std::byte* send,
          std::byte* receive, const Parts& parts)
      : rank_(rank),
        ranks_(parts.ranks()),
        steps_(static_cast<size_t>(std::bit_width(ranks_ - 1))),
        element_(reduce::SizeOf(reduction.type)),
        own_begin_(parts[rank].begin),
        parts_(parts),
        last_(parts[ranks_ - 1]),
        whole_(reduction),
        partial_(Partial(reduction)),
        send_(send),
        receive_(receive) {
    const Arc kept(parts_, rank_, Held(1));
    memory_ = std::make_unique_for_overwrite<std::byte[]>((kept[0].size + kept[1].size) * element_);
    // If the number of ranks is not a power of two, some parts that are kept are not received in
    // the first step.
    const Arc alone(parts_, (rank_ + ranks_ - Held(1)) % ranks_, 2 * Held(1) - ranks_);
    for (size_t piece = 0; piece < Arc::kPieces; ++piece) {
      const Range range = alone[piece];
      if (range.size == 0) continue;
      reduce::Copy(send_ + range.begin * element_, Reduced(range), range.size * element_,
                   reduce::Stores::kNormal);
    }
  }

  size_t sends() const override { return Arc::kPieces * steps_; }
  size_t receives() const override { return Arc::kPieces * steps_; }

  Outgoing Send(size_t n) const override {
    const size_t step = n / Arc::kPieces;
    const size_t peer = (rank_ + Held(step + 1)) % ranks_;
    const Range range = Exchanged(n, peer);
    Outgoing outgoing = To(static_cast<int>(peer), After(step, range), range.size * element_);
    if (step > 0) outgoing.needs = Arc::kPieces * step - 1;
    return outgoing;
  }

  Incoming Receive(size_t n) const override {
    const size_t step = n / Arc::kPieces;
    const size_t peer = (rank_ + ranks_ - Held(step + 1)) % ranks_;
    const Range range = Exchanged(n, rank_);
    const bool last = step + 1 == steps_;
    Incoming incoming;
    incoming.peer = static_cast<int>(peer);
    incoming.buffer.size = range.size * element_;
    if (range.size == 0) return incoming;
    incoming.buffer.data = last ? receive_ : Reduced(range);
    incoming.buffer.operand = After(step, range);
    incoming.buffer.reduction = last ? &whole_ : &partial_;
    if (step > 0) incoming.needs = Arc::kPieces * step - 1;
    return incoming;
  }

 private:
  // Returns the number of ranks whose parts a rank reduces after `steps` steps.
  size_t Held(size_t steps) const { return std::min(ranks_, std::bit_ceil(ranks_) >> steps); }

  // Returns the values that message n brings to a rank, among the parts that it keeps.
  Range Exchanged(size_t n, size_t to) const {
    const size_t step = n / Arc::kPieces;
    return Arc(parts_, to, Held(step) - Held(step + 1))[n % Arc::kPieces];
  }

  // Returns the place of reduced values; this rank's come first.
  std::byte* Reduced(const Range& range) const {
    const size_t begin = range.begin >= own_begin_ ? range.begin - own_begin_
                                                   : range.begin + last_.begin + last_.size -
                                                         parts_[0].begin - own_begin_;
    return memory_.get() + begin * element_;
  }
  // Returns the place of values after `steps` steps.
  const std::byte* After(size_t steps, const Range& range) const {
    if (range.size == 0) return send_;
    return steps == 0 ? send_ + range.begin * element_ : Reduced(range);
  }

  const size_t rank_;
  const size_t ranks_;
  const size_t steps_;
  const size_t element_;
  const size_t own_begin_;
  const Parts parts_;
  const Range last_;
  const reduce::Reduction whole_;
  const reduce::Reduction partial_;
  const std::byte* const send_;
  std::byte* const receive_;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace

absl::Status RecursiveHalvingReduceScatter(Messenger& messenger, int rank,
                                           const Operation& operation) {
  if (ReducedAlone(operation)) return absl::OkStatus();
  const auto& [reduction, send, receive, parts] =
      std::tie(operation.reduction, operation.send, operation.receive, operation.send_parts);
  const size_t element = operation.element();
  const auto self = static_cast<size_t>(rank);
  if (FollowEachOther(parts)) {
    return Run(messenger, Halving(self, reduction, send, receive, parts));
  }
  const PackedParts packed(parts);
  const Parts list = packed.Of();
  const auto values = std::make_unique_for_overwrite<std::byte[]>(packed.total() * element);
  for (size_t r = 0; r < parts.ranks(); ++r) {
    reduce::Copy(send + parts[r].begin * element, values.get() + list[r].begin * element,
                 parts[r].size * element, reduce::Stores::kNormal);
  }
  return Run(messenger, Halving(self, reduction, values.get(), receive, list));
}

}  // namespace railhead::collectives
