// SPDX-License-Identifier: Apache-2.0
#include "kube/http/memory_budget.h"

#include <utility>

namespace railhead::kube {

MemoryBudget::Claim::Claim(Claim&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}

MemoryBudget::Claim::~Claim() {
  if (budget_ == nullptr) return;
  {
    const std::lock_guard<std::mutex> lock(budget_->mutex_);
    budget_->free_bytes_ += bytes_;
  }
  budget_->freed_.notify_all();
}

std::optional<MemoryBudget::Claim> MemoryBudget::Take(size_t bytes, absl::Duration timeout) {
  if (bytes > largest_claim_) return std::nullopt;
  const size_t stays_free = bytes > reserve_ ? reserve_ : 0;
  std::unique_lock<std::mutex> lock(mutex_);
  if (!freed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                       [&] { return bytes + stays_free <= free_bytes_; })) {
    return std::nullopt;
  }
  free_bytes_ -= bytes;
  return Claim(this, bytes);
}

}  // namespace railhead::kube
