// SPDX-License-Identifier: Apache-2.0
//
// Memory of GPUs that a user has made known to a communicator: what its rails read where it lies,
// and how they came to it.
#ifndef RAILHEAD_RUNTIME_COMM_KNOWN_GPUS_H_
#define RAILHEAD_RUNTIME_COMM_KNOWN_GPUS_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "fabric/gpu_direct.h"
#include "runtime/device/memory.h"
#include "runtime/metrics/snapshot.h"
#include "runtime/rails/peer.h"

namespace railhead::comm {

// Any thread.
class KnownGpus : public std::enable_shared_from_this<KnownGpus> {
 public:
  // Makes memory known until the result is gone. `read`: some rail reads it where it lies.
  [[nodiscard]] std::shared_ptr<const void> Add(absl::Span<const std::byte> memory,
                                                const device::Memory& gpu, bool read);

  // Whether all of these bytes of `gpu` are known and read: what was freed and allocated again is
  // not what was made known.
  bool AreRead(absl::Span<const std::byte> bytes, const device::Memory& gpu) const;
  // Whether an address is in what is known. One that is no GPU's any more was freed too early.
  bool Holds(const void* address) const;

  // How a rail came to the memory that was made known last, and why not better ("" if it did).
  // Returns whether that is news.
  bool Note(const rails::RailName& rail, fabric::GpuDirectWay way, const std::string& trouble);
  std::vector<metrics::GpuDirectSnapshot> Ways() const;
  // Of the rails that read no memory of GPUs; "" if there are none.
  std::string Trouble() const;

 private:
  struct Known {
    absl::Span<const std::byte> memory;
    device::Memory gpu;
    bool read;
  };
  struct Rail {
    metrics::GpuDirectSnapshot seen;
    std::string trouble;
  };

  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<const Known>> known_;
  std::vector<Rail> rails_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_KNOWN_GPUS_H_
