// SPDX-License-Identifier: Apache-2.0
//
// Another profiler plugin that gets NCCL's events, too (RAILHEAD_NCCL_PROFILER), in the version of
// the interface in which NCCL calls this plugin. It gets the events that NCCL would pass to it
// alone, except transfers for other processes (PXN).
//
//   auto& chain = Chain<abi::ProfilerV6Table>::OfProcess();
//   absl::Status loaded = chain.Load("/opt/libtrace.so", "ncclProfiler_v6");
#ifndef RAILHEAD_PLUGINS_NCCL_PROFILER_CHAIN_H_
#define RAILHEAD_PLUGINS_NCCL_PROFILER_CHAIN_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugins/nccl/abi/profiler.h"

namespace railhead::nccl {

// Returns whether NCCL passes events of this type to a profiler with this mask: a profiler that
// wants the parts of a call gets the call, too.
bool Wants(uint64_t mask, uint64_t type);

// Returns the table of this name in the file, which stays loaded; `symbol` is "ncclProfiler_v6".
// The error names file, variable and what to do.
absl::StatusOr<const void*> FindTable(const std::string& file, const std::string& symbol);

// Load is for one thread at a time, the rest is thread-safe.
template <class Table>
class Chain {
 public:
  // Kept until the process ends.
  static Chain& OfProcess() {
    static auto* const chain = new Chain;
    return *chain;
  }

  // Loads the other profiler, unless it is loaded.
  absl::Status Load(const std::string& file, const std::string& symbol) {
    if (table() != nullptr) return absl::OkStatus();
    const absl::StatusOr<const void*> found = FindTable(file, symbol);
    if (!found.ok()) return found.status();
    table_ = static_cast<const Table*>(*found);
    return absl::OkStatus();
  }

  // Null until it is loaded.
  const Table* table() const { return table_.load(std::memory_order_acquire); }

  // Where the other profiler writes its mask, at its start and at any time later.
  int* mask() { return &mask_; }
  bool Wants(uint64_t type) { return nccl::Wants(static_cast<uint64_t>(Mask()), type); }

  // Writes both masks, or-ed, to NCCL's, now and in each Refresh.
  void Join(int* nccl_mask, int own) {
    own_mask_ = own;
    nccl_mask_ = nccl_mask;
    Refresh();
  }
  void Refresh() {
    int* const place = nccl_mask_.load(std::memory_order_acquire);
    if (place == nullptr) return;
    const int both = own_mask_.load(std::memory_order_relaxed) | Mask();
    std::atomic_ref<int> shared(*place);
    if (shared.load(std::memory_order_relaxed) != both) {
      shared.store(both, std::memory_order_relaxed);
    }
  }

 private:
  int Mask() { return std::atomic_ref<int>(mask_).load(std::memory_order_relaxed); }

  std::atomic<const Table*> table_ = nullptr;
  int mask_ = 0;
  std::atomic<int*> nccl_mask_ = nullptr;
  std::atomic<int> own_mask_ = 0;
};

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_PROFILER_CHAIN_H_
