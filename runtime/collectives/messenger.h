// SPDX-License-Identifier: Apache-2.0
//
// All that a collective algorithm knows of the world: it posts what it sends and where it wants
// what it receives, and lets things progress.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_MESSENGER_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_MESSENGER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collectives/call.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Where arriving bytes go.
struct ReceiveBuffer {
  std::byte* data = nullptr;
  size_t size = 0;
  // If set: what arrives is reduced with these values on its way, data[i] = operand[i] op
  // arrived[i], as `reduction` says, which lives as long as the buffers. May be equal to `data`.
  const std::byte* operand = nullptr;
  const reduce::Reduction* reduction = nullptr;
};

// Between two ranks the n-th message posted for sending lands in the n-th buffer posted for
// receiving; their sizes must be equal. Buffers stay the caller's and must live until done.
// Used by one thread at a time.
class Messenger {
 public:
  // Numbers the messages of one peer and direction.
  using Ticket = uint64_t;

  virtual ~Messenger() = default;

  // What messages that are posted from now on belong to. Ranks that contradict each other get
  // Internal from Progress.
  virtual void Expect(Call call) = 0;
  virtual Ticket PostSend(int peer, absl::Span<const std::byte> data) = 0;
  virtual Ticket PostReceive(int peer, const ReceiveBuffer& buffer) = 0;

  // Whether the message is on its way, with its buffer free again.
  virtual bool SendDone(int peer, Ticket ticket) const = 0;
  // Whether all bytes of the message are where they were wanted.
  virtual bool ReceiveDone(int peer, Ticket ticket) const = 0;

  // Waits until something has moved. An error is final.
  virtual absl::Status Progress() = 0;
};

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_MESSENGER_H_
