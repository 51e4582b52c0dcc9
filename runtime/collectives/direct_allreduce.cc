// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/schedule.h"

namespace railhead::collectives {
namespace {

class Exchange final : public Schedule {
 public:
  // `values`: a block for each rank; this rank's own is there.
  Exchange(size_t rank, size_t ranks, std::byte* values, size_t bytes)
      : rank_(rank), ranks_(ranks), values_(values), bytes_(bytes) {}

  size_t sends() const override { return ranks_ - 1; }
  size_t receives() const override { return ranks_ - 1; }
  Outgoing Send(size_t n) const override {
    return To(static_cast<int>((rank_ + n + 1) % ranks_), values_ + rank_ * bytes_, bytes_);
  }
  Incoming Receive(size_t n) const override {
    const size_t peer = (rank_ + ranks_ - n - 1) % ranks_;
    return From(static_cast<int>(peer), values_ + peer * bytes_, bytes_);
  }

 private:
  const size_t rank_;
  const size_t ranks_;
  std::byte* const values_;
  const size_t bytes_;
};

}  // namespace

absl::Status DirectAllReduce(Messenger& messenger, int rank, const Operation& operation) {
  if (operation.count == 0) return absl::OkStatus();
  const auto self = static_cast<size_t>(rank);
  const auto ranks = static_cast<size_t>(operation.ranks);
  const size_t bytes = operation.count * operation.element();
  std::vector<std::byte> values(ranks * bytes);
  std::memcpy(values.data() + self * bytes, operation.send, bytes);
  const Exchange exchange(self, ranks, values.data(), bytes);
  if (absl::Status status = Run(messenger, exchange); !status.ok()) return status;
  std::vector<const std::byte*> inputs;
  inputs.reserve(ranks);
  for (size_t r = 0; r < ranks; ++r) inputs.push_back(values.data() + r * bytes);
  reduce::Reduce(operation.reduction, inputs, operation.receive, operation.count,
                 reduce::Stores::kNormal);
  return absl::OkStatus();
}

}  // namespace railhead::collectives
