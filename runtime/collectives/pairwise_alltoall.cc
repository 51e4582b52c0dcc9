// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/schedule.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {
namespace {

class AllToAll final : public Schedule {
 public:
  AllToAll(size_t rank, const Operation& all)
      : rank_(rank),
        ranks_(static_cast<size_t>(all.ranks)),
        send_(all.send),
        send_parts_(all.send_parts),
        receive_(all.receive),
        receive_parts_(all.receive_parts) {}

  size_t sends() const override { return ranks_ - 1; }
  size_t receives() const override { return ranks_ - 1; }

  Outgoing Send(size_t n) const override {
    const size_t peer = (rank_ + n + 1) % ranks_;
    const Range part = send_parts_[peer];
    return To(static_cast<int>(peer), send_ + part.begin, part.size);
  }

  Incoming Receive(size_t n) const override {
    const size_t peer = (rank_ + ranks_ - n - 1) % ranks_;
    const Range part = receive_parts_[peer];
    return From(static_cast<int>(peer), receive_ + part.begin, part.size);
  }

 private:
  const size_t rank_;
  const size_t ranks_;
  const std::byte* const send_;
  const Parts send_parts_;
  std::byte* const receive_;
  const Parts receive_parts_;
};

}  // namespace

absl::Status PairwiseAllToAll(Messenger& messenger, int rank, const Operation& operation) {
  const auto self = static_cast<size_t>(rank);
  const Range own = operation.send_parts[self];
  reduce::Copy(operation.send + own.begin, operation.receive + operation.receive_parts[self].begin,
               own.size, reduce::Stores::kNormal);
  return Run(messenger, AllToAll(self, operation));
}

}  // namespace railhead::collectives
