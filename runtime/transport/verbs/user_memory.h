// SPDX-License-Identifier: Apache-2.0
//
// Memory that a rail's NIC may read where the user has it.
//
// Only what the user has made known, and for as long: a page that was given back and is somebody
// else's by now must never be sent, and no look at an address tells. Known memory is registered
// when it is first sent from, and stays registered until it is forgotten. Where that fails (too
// little memory may be pinned) it is not tried again, and the memory is copied as any other.
//
// Memory of a GPU is registered when it is made known, as a dma-buf or else by nvidia-peermem, so
// that it can be said at once which way it went. Where neither works, and for what is not read from
// where it lies, its bytes are copied by the GPU: no CPU may touch them. Its addresses are those of
// one allocation: what was known there of another has been freed, though nobody has said so.
//
// What is under way outlives being forgotten: who sends keeps the region until its NIC has no more
// use for it, and the region keeps its pages. So a NIC never reads pages that are somebody else's,
// whatever the user does.
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
#include "runtime/device/memory.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/known_gpu.h"

namespace railhead::transport::verbs {

// Of one device. Any thread, at any time.
class UserMemory : public std::enable_shared_from_this<UserMemory> {
 public:
  // A registration that can be sent from.
  class Region {
   public:
    uint32_t local_key() const { return registered_->lkey; }

   private:
    friend class UserMemory;
    std::shared_ptr<const DevicePort> port_;
    std::shared_ptr<const void> owner_;
    Owned<ibv_mr> registered_;  // goes first
  };

  static std::shared_ptr<UserMemory> Of(std::shared_ptr<const DevicePort> port);
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;

  // Makes memory known until the result is gone. It must stay mapped until then; `owner`, if there
  // is one, is kept for as long as a NIC may read it. Pieces of it may be made known several times.
  // What becomes of its registration is told to `log`.
  [[nodiscard]] std::shared_ptr<const void> Know(absl::Span<const std::byte> memory,
                                                 std::shared_ptr<const void> owner, Logger log);

  // The same of memory of a GPU.
  [[nodiscard]] KnownGpu KnowGpu(absl::Span<const std::byte> memory, const device::Memory& gpu,
                                 Logger log);

  // The region that all of these bytes are in; null when they must be copied. To be kept until the
  // NIC has sent them.
  std::shared_ptr<const Region> Find(absl::Span<const std::byte> bytes);

  // Copies bytes that may be in memory of a GPU which is known.
  absl::Status CopyOut(absl::Span<const std::byte> bytes, std::byte* to);

  // Registers none of what is known now any more: connections cannot do without pinned memory. That
  // of GPUs does not count as such.
  void MakeRoom();
  // Room was not what the connection lacked: memory is registered again when it is next sent from.
  void TryAgain();

 private:
  struct Known {
    absl::Span<const std::byte> memory;
    std::shared_ptr<const void> owner;
    Logger log;
    bool tried = false;
    std::shared_ptr<const Region> region = nullptr;
    std::optional<device::Memory> gpu = std::nullopt;
  };
  // By where they begin, as numbers: they are not all of one array.
  using Table = std::multimap<uintptr_t, Known>;

  explicit UserMemory(std::shared_ptr<const DevicePort> port) : port_(std::move(port)) {}
  std::shared_ptr<const void> Add(Known known);
  std::shared_ptr<const Region> Make(Owned<ibv_mr> registered, const Known& known) const;
  void Register(Known& known) const;
  // Returns why the NIC cannot read it, and what to do, or writes by which way it does.
  std::string RegisterGpu(Known& known, fabric::GpuDirectWay& way) const;
  // With the lock: of what is known, nothing is looked up any more that these bytes of `gpu` show
  // to be gone. Returns its regions, to be let go after the lock.
  std::vector<std::shared_ptr<const Region>> Supersede(absl::Span<const std::byte> memory,
                                                       const device::Memory& gpu);
  void Forget(Table::iterator known);
  // With the lock: the first known memory that all of these bytes are in and that `accept` takes.
  template <class Accept>
  void Search(absl::Span<const std::byte> bytes, Accept accept);

  const std::shared_ptr<const DevicePort> port_;
  std::atomic<bool> gpus_{false};  // memory of one was ever known
  std::mutex mutex_;               // guards what follows
  Table known_;
  size_t longest_ = 0;  // of all that were ever known
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_USER_MEMORY_H_
