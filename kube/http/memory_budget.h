// SPDX-License-Identifier: Apache-2.0
//
// Memory limit shared by threads, for example for parsed documents. The operator's webhook uses it
// to stay within its container's memory.
#ifndef RAILHEAD_KUBE_HTTP_MEMORY_BUDGET_H_
#define RAILHEAD_KUBE_HTTP_MEMORY_BUDGET_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>

#include "absl/time/time.h"

namespace railhead::kube {

// Thread-safe.
class MemoryBudget {
 public:
  // Returns its bytes when destroyed.
  class Claim {
   public:
    Claim(Claim&& other) noexcept;
    Claim& operator=(Claim&& other) = delete;
    ~Claim();

   private:
    friend class MemoryBudget;
    Claim(MemoryBudget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {}

    MemoryBudget* budget_;
    size_t bytes_;
  };

  // Claims of more than `reserve` bytes share `bytes`. Smaller ones may take `reserve` bytes more,
  // so that they do not wait for large ones.
  explicit MemoryBudget(size_t bytes, size_t reserve = 0)
      : largest_claim_(bytes), reserve_(reserve), free_bytes_(bytes + reserve) {}

  size_t largest_claim() const { return largest_claim_; }
  // Waits until `bytes` are free. Nullopt after `timeout`, or if `bytes` exceeds the largest claim.
  std::optional<Claim> Take(size_t bytes, absl::Duration timeout);

 private:
  const size_t largest_claim_;
  const size_t reserve_;
  std::mutex mutex_;
  std::condition_variable freed_;
  size_t free_bytes_;  // guarded by mutex_
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_MEMORY_BUDGET_H_
