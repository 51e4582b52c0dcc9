// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "runtime/base/parts.h"
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/guest.h"
#include "runtime/collectives/reducing.h"
#include "runtime/collectives/schedule.h"

namespace railhead::collectives {
namespace {

// For a rank that takes part in the exchanges. Its messages: the extra rank's input, the halvings,
// the doublings, the extra rank's result.
class HalvingHost final : public Schedule {
 public:
  HalvingHost(int rank, const Operation& all)
      : rank_(static_cast<size_t>(rank)),
        core_(static_cast<size_t>(CoreRanks(all.ranks))),
        steps_(static_cast<size_t>(std::countr_zero(core_))),
        guests_(rank_ + core_ < static_cast<size_t>(all.ranks) ? 1 : 0),
        element_(reduce::SizeOf(all.reduction.type)),
        count_(all.count),
        parts_(core_, all.count),
        whole_(all.reduction),
        partial_(Partial(all.reduction)),
        send_(all.send),
        receive_(all.receive) {}

  size_t sends() const override { return 2 * steps_ + guests_; }
  size_t receives() const override { return guests_ + 2 * steps_; }

  Outgoing Send(size_t n) const override {
    if (n == 2 * steps_) return Out(rank_ + core_, {0, count_}, receive_, receives());
    if (n >= steps_) {
      const size_t distance = size_t{1} << (n - steps_);
      return Out(rank_ ^ distance, Held(rank_, distance), receive_, guests_ + n);
    }
    const size_t distance = core_ >> (n + 1);
    const size_t received = guests_ + n;
    return Out(rank_ ^ distance, Held(rank_ ^ distance, distance), After(received), received);
  }

  Incoming Receive(size_t n) const override {
    Incoming incoming;
    if (n > 0) incoming.needs = n - 1;
    Range range = {0, count_};
    size_t peer = rank_ + core_;
    const size_t step = n - guests_;
    if (n >= guests_ + steps_) {
      const size_t distance = size_t{1} << (step - steps_);
      peer = rank_ ^ distance;
      range = Held(peer, distance);
    } else {
      if (n >= guests_) {
        const size_t distance = core_ >> (step + 1);
        peer = rank_ ^ distance;
        range = Held(rank_, distance);
      }
      incoming.buffer.operand = After(n) + range.begin * element_;
      incoming.buffer.reduction = n + 1 == guests_ + steps_ ? &whole_ : &partial_;
    }
    incoming.buffer.data = receive_ + range.begin * element_;
    incoming.buffer.size = range.size * element_;
    incoming.peer = static_cast<int>(peer);
    return incoming;
  }

 private:
  // Returns the place of this rank's values after `received` messages.
  const std::byte* After(size_t received) const { return received == 0 ? send_ : receive_; }

  // Returns the range of a rank after exchanges over `distance` have halved it, or before doubling.
  Range Held(size_t rank, size_t distance) const {
    const size_t first = rank / distance * distance;
    const size_t begin = parts_[first].begin;
    const Range last = parts_[first + distance - 1];
    return {begin, last.begin + last.size - begin};
  }

  Outgoing Out(size_t peer, Range range, const std::byte* values, size_t received) const {
    Outgoing outgoing =
        To(static_cast<int>(peer), values + range.begin * element_, range.size * element_);
    if (received > 0) outgoing.needs = received - 1;
    return outgoing;
  }

  const size_t rank_;
  const size_t core_;
  const size_t steps_;
  const size_t guests_;
  const size_t element_;
  const size_t count_;
  const Parts parts_;
  const reduce::Reduction whole_;
  const reduce::Reduction partial_;
  const std::byte* const send_;
  std::byte* const receive_;
};

}  // namespace

absl::Status HalvingDoublingAllReduce(Messenger& messenger, int rank, const Operation& operation) {
  if (ReducedAlone(operation)) return absl::OkStatus();
  const int core = CoreRanks(operation.ranks);
  if (rank >= core) return Run(messenger, Guest(rank - core, operation));
  return Run(messenger, HalvingHost(rank, operation));
}

}  // namespace railhead::collectives
