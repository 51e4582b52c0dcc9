// SPDX-License-Identifier: Apache-2.0
//
// Memory that is registered with a rail so that peers' NICs may write it. Separate from
// user_memory.h, so that users need no verbs header.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_SHARED_MEMORY_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace railhead::transport {

// Deregistered when it is destroyed. Thread-safe.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  virtual ~SharedMemory() = default;

  // For peers, on the rail with which it is registered; not 0.
  virtual uint32_t remote_key() const = 0;
  // For memory of a device; they wait for the NIC (self_pair.h). Write: copies bytes of the host to
  // `to`, which is in it. Flush: makes all that NICs have written to it visible to the device.
  virtual absl::Status Write(std::byte* to, absl::Span<const std::byte> from) const = 0;
  virtual absl::Status Flush(const std::byte* address) const = 0;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_SHARED_MEMORY_H_
