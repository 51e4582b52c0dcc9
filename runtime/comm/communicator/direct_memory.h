// SPDX-License-Identifier: Apache-2.0
//
// The program's memory that a communicator accesses directly: windows, which other ranks of this
// place read and write, and registered host and GPU memory, which the NICs of rails read. Thread-
// safe, except where stated.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_DIRECT_MEMORY_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_DIRECT_MEMORY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/comm/communicator/call_executor.h"
#include "runtime/comm/communicator/known_gpus.h"
#include "runtime/comm/communicator/paths.h"
#include "runtime/comm/setup/setup.h"
#include "runtime/device/cuda_api.h"
#include "runtime/device/memory.h"
#include "runtime/rails/mesh.h"

namespace railhead::comm {

class DirectMemory {
 public:
  // The communicator that it belongs to; all outlive it.
  struct Owner {
    int rank;
    int world_size;
    const std::string& self;  // for messages
    const SetupOptions& setup;
    const Fabric& fabric;
    const Paths& paths;
    const bootstrap::Watch& watch;
    CallExecutor& executor;
  };
  explicit DirectMemory(const Owner& owner) : owner_(owner) {}

  // Creates a window (shm/window.h) of one piece of memory per rank, and returns its number. All
  // ranks must call it, and CloseWindow, one thread at a time. Returns InvalidArgument on all ranks
  // if a piece was not allocated with rhMemAlloc; the communicator stays usable. Without shared
  // memory it has no effect. `wrong`: why this rank cannot take part, which it then returns.
  absl::StatusOr<size_t> OpenWindow(std::byte* memory, size_t bytes,
                                    const absl::Status& wrong = absl::OkStatus());
  void CloseWindow(size_t window);

  // Registers memory of this rank, also of a GPU, with its RDMA rails, which then send large
  // messages without copying. The memory must stay valid until the result is released, or, if it
  // has an owner, until the owner is. Managed memory is not registered. Returns an error if the GPU
  // driver fails.
  using Registration = std::vector<std::shared_ptr<const void>>;  // by rail
  absl::StatusOr<Registration> Register(absl::Span<const std::byte> memory,
                                        const std::shared_ptr<const void>& owner) const;
  // Registered GPU memory.
  const KnownGpus& known_gpus() const { return *known_gpus_; }
  // Why data of registered GPU memory goes through the host; "" if it does not.
  std::string Trouble() const;

  // Driver of GPUs whose memory buffers may be in; null if none is loaded.
  const device::CudaApi* cuda() const {
    return owner_.setup.cuda != nullptr ? owner_.setup.cuda->Loaded() : nullptr;
  }
  // Pinned memory for copies of such buffers. Used by the thread that runs a call.
  struct Staging {
    device::PinnedMemory send;
    device::PinnedMemory receive;
  };
  Staging& staging() { return *staging_; }
  void ReleaseStaging() { staging_.reset(); }

  // Returns true if rails may send these bytes to `peer` directly from GPU memory: they are
  // registered, and do not go through shared memory.
  bool ReadsGpu(absl::Span<const std::byte> bytes, const device::Memory& gpu, int peer) const {
    const Paths& paths = owner_.paths;
    return paths.over_verbs && known_gpus_->AreRead(bytes, gpu) &&
           (paths.hierarchy == nullptr || !paths.hierarchy->IsHere(peer));
  }
  // Like ReadsGpu, for a broadcast; false if ranks of a place pass it on in shared memory.
  bool BroadcastsGpu(absl::Span<const std::byte> bytes, const device::Memory& gpu) const {
    const Paths& paths = owner_.paths;
    return paths.hierarchy == nullptr && paths.over_verbs && known_gpus_->AreRead(bytes, gpu);
  }
  // Disables the copying of small messages while it exists.
  class NothingCopied {
   public:
    explicit NothingCopied(const DirectMemory& memory) : mesh_(*memory.owner_.paths.mesh) {
      mesh_.CopySmall(false);
    }
    ~NothingCopied() { mesh_.CopySmall(true); }
    NothingCopied(const NothingCopied&) = delete;
    NothingCopied& operator=(const NothingCopied&) = delete;

   private:
    rails::Mesh& mesh_;
  };

 private:
  Registration RegisterGpu(absl::Span<const std::byte> memory, const device::Memory& gpu) const;

  const Owner owner_;
  std::unique_ptr<Staging> staging_ = std::make_unique<Staging>();
  const std::shared_ptr<KnownGpus> known_gpus_ = std::make_shared<KnownGpus>();
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_DIRECT_MEMORY_H_
