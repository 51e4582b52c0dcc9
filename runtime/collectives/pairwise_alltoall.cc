// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/pairwise_alltoall.h"

#include "runtime/collectives/schedule.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {
namespace {

class AllToAll final : public Schedule {
 public:
  AllToAll(size_t rank, const std::byte* send, const Parts& send_parts, std::byte* receive,
           const Parts& receive_parts)
      : rank_(rank),
        ranks_(send_parts.ranks()),
        send_(send),
        send_parts_(send_parts),
        receive_(receive),
        receive_parts_(receive_parts) {}

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

absl::Status PairwiseAllToAll(Messenger& messenger, int rank, const std::byte* send,
                              const Parts& send_parts, std::byte* receive,
                              const Parts& receive_parts) {
  const auto self = static_cast<size_t>(rank);
  const Range from = send_parts[self];
  reduce::Copy(send + from.begin, receive + receive_parts[self].begin, from.size,
               reduce::Stores::kNormal);
  return Run(messenger, AllToAll(self, send, send_parts, receive, receive_parts));
}

}  // namespace railhead::collectives
