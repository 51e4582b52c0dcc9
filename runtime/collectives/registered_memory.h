// SPDX-License-Identifier: Apache-2.0
//
// Memory that is registered with the NICs of a connection's rails: peers' NICs may write it, and
// this side's read it, also where the CPU cannot access it.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_REGISTERED_MEMORY_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_REGISTERED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace railhead::collectives {

// Memory of a peer, as this side's NICs address it.
struct RemoteMemory {
  uint64_t address = 0;
  std::vector<uint32_t> keys;  // of its registration, by rail; empty: it cannot be written
};

// Memory of this process. Must outlive the messages that use it.
class RegisteredMemory {
 public:
  RegisteredMemory() = default;
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;
  virtual ~RegisteredMemory() = default;

  // Not 0, and never used twice by a process.
  virtual uint64_t number() const = 0;
  // For peers: its start, and the keys.
  virtual const RemoteMemory& remote() const = 0;
  // The CPU must not access it.
  virtual bool on_device() const = 0;
  // Copies bytes of the host to `to`, which is in it, without the CPU.
  virtual absl::Status Write(std::byte* to, absl::Span<const std::byte> from) const = 0;
};

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_REGISTERED_MEMORY_H_
