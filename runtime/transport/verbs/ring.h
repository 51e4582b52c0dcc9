// SPDX-License-Identifier: Apache-2.0
//
// Ring of slots in memory that the NIC may access: page aligned, pinned, registered with minimal
// rights.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_RING_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_RING_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/slot.h"

namespace railhead::transport::verbs {

class Ring {
 public:
  enum class Use {
    kSend,     // read by the NIC
    kReceive,  // written by the NIC, for the peer
  };

  // `port` must outlive the ring.
  static absl::StatusOr<Ring> Create(const DevicePort& port, Use use, uint32_t slots,
                                     uint32_t slot_payload);

  // Returns the memory of such a ring in bytes.
  static size_t Bytes(uint32_t slots, uint32_t slot_payload);

  uint32_t slots() const { return slots_; }
  uint32_t slot_payload() const { return slot_payload_; }
  std::byte* Slot(uint64_t number) const {
    return base_.get() + (number & (slots_ - 1)) * SlotStride(slot_payload_);
  }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(base_.get()); }
  uint32_t local_key() const { return region_->lkey; }
  uint32_t remote_key() const { return region_->rkey; }

 private:
  Ring(Owned<std::byte> base, Owned<ibv_mr> region, uint32_t slots, uint32_t slot_payload);

  Owned<std::byte> base_;  // unmapped after the region is deregistered
  Owned<ibv_mr> region_;
  uint32_t slots_;
  uint32_t slot_payload_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_RING_H_
