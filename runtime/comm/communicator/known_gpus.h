// SPDX-License-Identifier: Apache-2.0
//
// Memory of GPUs that a user has made known to a communicator: what its rails read where it lies,
// and how they came to it.
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

// Any thread.
class KnownGpus : public std::enable_shared_from_this<KnownGpus> {
 public:
  // How a rail came to some memory, and why not better ("" if it did).
  struct Way {
    metrics::GpuDirectSnapshot rail;
    std::string trouble;
  };

  // Makes memory known until the result is gone.
  [[nodiscard]] std::shared_ptr<const void> Add(absl::Span<const std::byte> memory,
                                                const device::Memory& gpu, std::vector<Way> ways);

  // Whether all of these bytes of `gpu` are known, and some rail reads them where they lie: what
  // was freed and allocated again is not what was made known.
  bool AreRead(absl::Span<const std::byte> bytes, const device::Memory& gpu) const;
  // Whether an address is in what is known. One that is no GPU's any more was freed too early.
  bool Holds(const void* address) const;

  // Whether a rail's way is to be told for the first time.
  bool IsNews(const metrics::GpuDirectSnapshot& rail);
  // Of all that is known now, the worst way of each rail.
  std::vector<metrics::GpuDirectSnapshot> Ways() const;
  // Why rails do not read some of what is known now; "" if they do.
  std::string Trouble() const;

 private:
  struct Known {
    absl::Span<const std::byte> memory;
    device::Memory gpu;
    std::vector<Way> ways;
  };
  // With the lock.
  std::vector<Way> Worst() const;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<const Known>> known_;
  std::vector<metrics::GpuDirectSnapshot> told_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_KNOWN_GPUS_H_
