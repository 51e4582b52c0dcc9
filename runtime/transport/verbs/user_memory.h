// SPDX-License-Identifier: Apache-2.0
//
// Memory that a rail's NIC may read where the user has it.
//
// Only what the user has made known, and for as long: a page that was given back and is somebody
// else's by now must never be sent, and no look at an address tells. Known memory is registered
// when it is first sent from, and stays registered until it is forgotten. Where that fails (too
// little memory may be pinned) it is not tried again, and the memory is copied as any other.
//
// What is under way outlives being forgotten: who sends keeps the region until its NIC has no more
// use for it, and the region keeps its pages. So a NIC never reads pages that are somebody else's,
// whatever the user does.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_USER_MEMORY_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_USER_MEMORY_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "absl/types/span.h"
#include "runtime/base/log.h"
#include "runtime/transport/verbs/device_port.h"

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

  // The region that all of these bytes are in; null when they must be copied. To be kept until the
  // NIC has sent them.
  std::shared_ptr<const Region> Find(absl::Span<const std::byte> bytes);

  // Registers none of what is known now any more: connections cannot do without pinned memory.
  void MakeRoom();

 private:
  struct Known {
    absl::Span<const std::byte> memory;
    std::shared_ptr<const void> owner;
    Logger log;
    bool tried = false;
    std::shared_ptr<const Region> region;
  };
  // By where they begin, as numbers: they are not all of one array.
  using Table = std::multimap<uintptr_t, Known>;

  explicit UserMemory(std::shared_ptr<const DevicePort> port) : port_(std::move(port)) {}
  void Register(Known& known) const;
  void Forget(Table::iterator known);

  const std::shared_ptr<const DevicePort> port_;
  std::mutex mutex_;  // guards what follows
  Table known_;
  size_t longest_ = 0;  // of all that were ever known
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_USER_MEMORY_H_
