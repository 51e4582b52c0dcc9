// SPDX-License-Identifier: Apache-2.0
//
// Registration cache: user memory that a rail's NIC may read directly.
//
// It contains only memory that the user registered, for as long as that lasts: a page that was
// freed and reused must never be sent, and an address does not reveal that. If the NIC cannot
// register it (limit of pinned memory), it is copied like other memory and not tried again.
//
// GPU memory is registered as a dma-buf or else by nvidia-peermem. If neither works, and for bytes
// that are not sent directly, the GPU copies them: the CPU must not access them. The addresses are
// those of one allocation: an earlier registration at the same addresses has been freed, even if
// the user did not deregister it.
//
// Sending registers nothing and takes no lock, except for the first frame from other memory than
// the last one's, or after a change of the cache: a Reader keeps its last answer.
//
// Requests in flight survive deregistration: the sender holds the region until its NIC is done, and
// the region keeps its pages. So a NIC never reads reused pages, whatever the user does.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_USER_MEMORY_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_USER_MEMORY_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "fabric/gpu_direct.h"
#include "runtime/base/log.h"
#include "runtime/base/page_changes.h"
#include "runtime/device/memory.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/known_gpu.h"

namespace railhead::transport::verbs {

// The cache of one device. Thread-safe.
class UserMemory : public std::enable_shared_from_this<UserMemory> {
 public:
  // A registration to send from.
  class Region {
   public:
    uint32_t local_key() const { return registered_->lkey; }
    uint32_t remote_key() const { return registered_->rkey; }

   private:
    friend class UserMemory;
    std::shared_ptr<const DevicePort> port_;
    std::shared_ptr<const void> owner_;
    Owned<ibv_mr> registered_;  // destroyed first
  };

  // A sender's access to the cache, for one thread. Its last answer keeps no memory registered.
  class Reader;

  static std::shared_ptr<UserMemory> Of(std::shared_ptr<const DevicePort> port);
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;

  // Registers memory until the result is destroyed; it must stay mapped until then. `owner`, if
  // any, is kept for as long as a NIC may read it. Parts may be registered several times. The
  // outcome is logged to `log`.
  [[nodiscard]] std::shared_ptr<const void> Know(absl::Span<const std::byte> memory,
                                                 std::shared_ptr<const void> owner, Logger log);

  // Does the same for GPU memory.
  [[nodiscard]] KnownGpu KnowGpu(absl::Span<const std::byte> memory, const device::Memory& gpu,
                                 Logger log);

  // Registers memory that peers' NICs may also write, and that this side's links send from, until
  // `known` is destroyed. `buffer`: of memory of a device, as its driver exports it; it is not
  // needed with nvidia-peermem, nor afterwards. `on_device`: the CPU must not access it, so that
  // frames from it are always read by the NIC.
  struct Shared {
    std::shared_ptr<const void> known;
    uint32_t remote_key = 0;
  };
  absl::StatusOr<Shared> Share(absl::Span<std::byte> memory, const device::DmaBuf* buffer,
                               bool on_device, const Logger& log);

  // Deregisters everything from the NIC, except GPU memory, because connections need pinned memory.
  void MakeRoom();
  // Registers it again.
  void TryAgain();

 private:
  struct Known {
    absl::Span<const std::byte> memory;
    std::shared_ptr<const void> owner;
    Logger log;
    std::shared_ptr<const Region> region = nullptr;
    std::optional<device::Memory> gpu = std::nullopt;
    bool on_device = false;  // see Share
    bool shared = false;     // with peers
  };
  // By start address as a number, because they are not parts of one array.
  using Table = std::multimap<uintptr_t, Known>;

  explicit UserMemory(std::shared_ptr<const DevicePort> port) : port_(std::move(port)) {}
  std::shared_ptr<const void> Add(Known known);
  std::shared_ptr<const Region> Make(Owned<ibv_mr> registered, const Known& known) const;
  void Register(Known& known) const;
  // Requires the lock. Registers anew what belongs to segments, whose pages may be others now.
  void RenewOwned();
  // Returns why the NIC cannot read it, with the fix, or sets the method it uses.
  std::string RegisterGpu(Known& known, fabric::GpuDirectWay& way) const;
  // Requires the lock. Removes entries that these bytes of `gpu` prove to be freed. Returns their
  // regions, to be released after the lock.
  std::vector<std::shared_ptr<const Region>> Supersede(absl::Span<const std::byte> memory,
                                                       const device::Memory& gpu);
  void Forget(Table::iterator known);

  // For the bytes that it was given for, and all that are in `memory`, until the next change.
  struct Answer {
    uint64_t changes = 0;
    absl::Span<const std::byte> memory;
    std::weak_ptr<const Region> region = {};
    std::optional<device::Memory> gpu = std::nullopt;
    bool on_device = false;
  };
  Answer Find(absl::Span<const std::byte> bytes);

  const std::shared_ptr<const DevicePort> port_;
  std::atomic<bool> gpus_{false};       // GPU memory was ever registered
  std::atomic<bool> on_device_{false};  // by Share
  std::mutex mutex_;                    // guards changes of all below
  std::atomic<uint64_t> changes_{1};
  uint64_t page_changes_seen_ = page_changes;  // by the registrations
  Table known_;
  size_t longest_ = 0;  // of all ever registered
};

class UserMemory::Reader {
 public:
  // `memory` must outlive it.
  explicit Reader(UserMemory& memory) : memory_(memory) {}

  // Returns the region that contains all these bytes; null if they must be copied. Keep it until
  // the NIC has sent them.
  std::shared_ptr<const Region> Find(absl::Span<const std::byte> bytes) {
    return Ask(bytes).region.lock();
  }
  // Returns true if only the NIC can read them.
  bool IsOnDevice(absl::Span<const std::byte> bytes) {
    return memory_.on_device_.load(std::memory_order_acquire) && !bytes.empty() &&
           Ask(bytes).on_device;
  }
  // Copies bytes that may be in registered GPU memory.
  absl::Status CopyOut(absl::Span<const std::byte> bytes, std::byte* to);

 private:
  const Answer& Ask(absl::Span<const std::byte> bytes);

  UserMemory& memory_;
  Answer last_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_USER_MEMORY_H_
