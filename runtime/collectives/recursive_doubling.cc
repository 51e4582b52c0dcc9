// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <vector>

#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/guest.h"
#include "runtime/collectives/reducing.h"
#include "runtime/collectives/schedule.h"

namespace railhead::collectives {
namespace {

// For a rank that takes part in the exchanges: `core` ranks do, a power of two, and each of the
// others is the extra rank of the rank that is `core` less.
class DoublingHost final : public Schedule {
 public:
  DoublingHost(int rank, const Operation& all)
      : rank_(rank),
        core_(CoreRanks(all.ranks)),
        steps_(static_cast<size_t>(std::countr_zero(static_cast<unsigned>(core_)))),
        guests_(rank + core_ < all.ranks ? 1 : 0),
        bytes_(all.count * reduce::SizeOf(all.reduction.type)),
        whole_(all.reduction),
        partial_(Partial(all.reduction)),
        send_(all.send),
        receive_(all.receive),
        memory_(2 * bytes_) {}

  // The extra rank's input comes before the exchanges, and its result leaves after them.
  size_t sends() const override { return steps_ + guests_; }
  size_t receives() const override { return guests_ + steps_; }

  Outgoing Send(size_t n) const override {
    const size_t received = n + guests_;
    Outgoing outgoing = To(n == steps_ ? rank_ + core_ : rank_ ^ (1 << n), After(received), bytes_);
    if (received > 0) outgoing.needs = received - 1;
    return outgoing;
  }

  Incoming Receive(size_t n) const override {
    Incoming incoming = From(n < guests_ ? rank_ + core_ : rank_ ^ (1 << (n - guests_)),
                             n + 1 == receives() ? Result() : Place(n), bytes_);
    incoming.buffer.operand = After(n);
    incoming.buffer.reduction = n + 1 == receives() ? &whole_ : &partial_;
    if (n > 0) incoming.needs = n - 1;
    // The earlier content of this place was sent in the exchange before.
    if (n > guests_) incoming.after = n - guests_ - 1;
    return incoming;
  }

  // Returns the place of the result, which may arrive before the input has left.
  std::byte* Result() const { return receives() == 1 && send_ == receive_ ? Place(0) : receive_; }

 private:
  std::byte* Place(size_t n) const { return memory_.data() + n % 2 * bytes_; }
  // Returns the values of this rank after `received` messages.
  const std::byte* After(size_t received) const {
    if (received == 0) return send_;
    return received == receives() ? Result() : Place(received - 1);
  }

  const int rank_;
  const int core_;
  const size_t steps_;
  const size_t guests_;
  const size_t bytes_;
  const reduce::Reduction whole_;
  const reduce::Reduction partial_;
  const std::byte* const send_;
  std::byte* const receive_;
  mutable std::vector<std::byte> memory_;
};

}  // namespace

absl::Status RecursiveDoublingAllReduce(Messenger& messenger, int rank,
                                        const Operation& operation) {
  if (ReducedAlone(operation)) return absl::OkStatus();
  const int core = CoreRanks(operation.ranks);
  if (rank >= core) return Run(messenger, Guest(rank - core, operation));
  const DoublingHost host(rank, operation);
  if (absl::Status status = Run(messenger, host); !status.ok()) return status;
  if (host.Result() != operation.receive) {
    reduce::Copy(host.Result(), operation.receive,
                 operation.count * reduce::SizeOf(operation.reduction.type),
                 reduce::Stores::kNormal);
  }
  return absl::OkStatus();
}

}  // namespace railhead::collectives
