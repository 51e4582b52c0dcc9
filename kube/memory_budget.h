// SPDX-License-Identifier: Apache-2.0
//
// Memory limit shared by threads, for example for parsed documents. The operator's webhook uses it
// to stay within its container's memory.
#ifndef RAILHEAD_KUBE_MEMORY_BUDGET_H_
#define RAILHEAD_KUBE_MEMORY_BUDGET_H_

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

  explicit MemoryBudget(size_t bytes) : total_bytes_(bytes), free_bytes_(bytes) {}

  size_t total_bytes() const { return total_bytes_; }
  // Waits until `bytes` are free. Nullopt after `timeout`, or if `bytes` exceeds the total.
  std::optional<Claim> Take(size_t bytes, absl::Duration timeout);

 private:
  const size_t total_bytes_;
  std::mutex mutex_;
  std::condition_variable freed_;
  size_t free_bytes_;  // guarded by mutex_
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_MEMORY_BUDGET_H_
