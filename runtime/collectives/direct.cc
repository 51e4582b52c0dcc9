// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/schedule.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {
namespace {

// The others' blocks, which the root of `ranks` ranks sends or receives.
class Root final : public Schedule {
 public:
  Root(int root, int ranks, const std::byte* send, std::byte* receive, size_t bytes)
      : root_(static_cast<size_t>(root)),
        ranks_(static_cast<size_t>(ranks)),
        send_(send),
        receive_(receive),
        bytes_(bytes) {}

  size_t sends() const override { return send_ == nullptr ? 0 : ranks_ - 1; }
  size_t receives() const override { return receive_ == nullptr ? 0 : ranks_ - 1; }
  Outgoing Send(size_t n) const override {
    const size_t peer = Peer(n);
    return To(static_cast<int>(peer), send_ + peer * bytes_, bytes_);
  }
  Incoming Receive(size_t n) const override {
    const size_t peer = Peer(n);
    return From(static_cast<int>(peer), receive_ + peer * bytes_, bytes_);
  }

 private:
  size_t Peer(size_t n) const { return (root_ + n + 1) % ranks_; }

  const size_t root_;
  const size_t ranks_;
  const std::byte* const send_;
  std::byte* const receive_;
  const size_t bytes_;
};

}  // namespace

absl::Status DirectGather(Messenger& messenger, int rank, const Operation& operation) {
  const auto& [root, send, receive, bytes] =
      std::tie(operation.root, operation.send, operation.receive, operation.count);
  if (rank != root) return Run(messenger, OneEachWay(Schedule::To(root, send, bytes), {}));
  reduce::Copy(send, receive + static_cast<size_t>(root) * bytes, bytes, reduce::Stores::kNormal);
  return Run(messenger, Root(root, operation.ranks, nullptr, receive, bytes));
}

absl::Status DirectScatter(Messenger& messenger, int rank, const Operation& operation) {
  const auto& [root, send, receive, bytes] =
      std::tie(operation.root, operation.send, operation.receive, operation.count);
  if (rank != root) return Run(messenger, OneEachWay({}, Schedule::From(root, receive, bytes)));
  reduce::Copy(send + static_cast<size_t>(root) * bytes, receive, bytes, reduce::Stores::kNormal);
  return Run(messenger, Root(root, operation.ranks, send, nullptr, bytes));
}

}  // namespace railhead::collectives
