// SPDX-License-Identifier: Apache-2.0
//
// GPU memory that the program has registered with a communicator, and how each rail accesses it.
// Used by Communicator and for host staging.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_KNOWN_GPUS_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_KNOWN_GPUS_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "fabric/gpu_direct.h"
#include "runtime/device/memory.h"
#include "runtime/metrics/snapshot.h"

namespace railhead::comm {

// Thread-safe.
class KnownGpus : public std::enable_shared_from_this<KnownGpus> {
 public:
  // Access of a rail to some memory, and why it uses no better way ("" if it needs none).
  struct Way {
    metrics::GpuDirectSnapshot rail;
    std::string trouble;
  };

  // Adds memory until the result is released.
  [[nodiscard]] std::shared_ptr<const void> Add(absl::Span<const std::byte> memory,
                                                const device::Memory& gpu, std::vector<Way> ways);

  // Returns true if all these bytes of `gpu` are registered and some rail reads them directly.
  // Memory that was freed and allocated again counts as not registered.
  bool AreRead(absl::Span<const std::byte> bytes, const device::Memory& gpu) const;
  // Returns true if the address is in registered memory. If it is no longer GPU memory, it was
  // freed before it was deregistered.
  bool Holds(const void* address) const;

  // Returns true at the first call for this rail and way, which the caller then logs.
  bool IsNews(const metrics::GpuDirectSnapshot& rail);
  // Returns the worst way of each rail over all registered memory.
  std::vector<metrics::GpuDirectSnapshot> Ways() const;
  // Returns why rails do not read some of the registered memory directly; "" if they do.
  std::string Trouble() const;

 private:
  struct Known {
    absl::Span<const std::byte> memory;
    device::Memory gpu;
    std::vector<Way> ways;
  };
  // The caller holds the lock.
  std::vector<Way> Worst() const;

  mutable std::mutex mutex_;  // guards the members below
  std::vector<std::unique_ptr<const Known>> known_;
  std::vector<metrics::GpuDirectSnapshot> told_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_KNOWN_GPUS_H_
