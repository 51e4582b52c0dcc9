// SPDX-License-Identifier: Apache-2.0
//
// Interface of collective algorithms to the transport: post sends and receives, and wait.
// Implemented by rails::Mesh, shm::Mailbox and Subgroup.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_MESSENGER_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_MESSENGER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/registered_memory.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Destination of arriving bytes.
struct ReceiveBuffer {
  std::byte* data = nullptr;
  size_t size = 0;
  // If set, arriving bytes are reduced with these values on arrival: data[i] = operand[i] op
  // arrived[i], by `reduction`, which must live as long as the buffers. May equal `data`.
  const std::byte* operand = nullptr;
  const reduce::Reduction* reduction = nullptr;
  // Memory that contains `data`, if the peer's NICs may write it.
  const RegisteredMemory* registered = nullptr;
};

// Between two ranks, the n-th message sent goes into the n-th buffer posted; sizes must be equal.
// Buffers belong to the caller and must live until done. Use from one thread at a time.
class Messenger {
 public:
  // Number of a message within one peer and direction.
  using Ticket = uint64_t;

  virtual ~Messenger() = default;

  // Sets the call of messages posted from now on. If ranks contradict each other, Progress returns
  // Internal.
  virtual void Expect(Call call) = 0;
  virtual Ticket PostSend(int peer, absl::Span<const std::byte> data) = 0;
  // The same, if another PostSend to that peer follows at once: both may leave together.
  virtual Ticket PostPart(int peer, absl::Span<const std::byte> data) {
    return PostSend(peer, data);
  }
  // The same, for memory that only NICs need to be able to read, and that stays unchanged until the
  // send is done. They write it to `to`, if that has keys and nothing is lost; the matching receive
  // has that memory registered.
  virtual Ticket PostDirect(int peer, absl::Span<const std::byte> data,
                            const RemoteMemory& /*to*/) {
    return PostSend(peer, data);
  }
  virtual Ticket PostReceive(int peer, const ReceiveBuffer& buffer) = 0;

  // Returns true if small messages to that peer may consist of two parts (SendJoined), and small
  // ones from it may be read in place (Arrived).
  virtual bool Joins(int /*peer*/) const { return false; }
  // Sends `head` and `rest` as one message if that is possible at once, and returns whether it was.
  // Then both may be reused, and the message has no number.
  virtual bool SendJoined(int /*peer*/, absl::Span<const std::byte> /*head*/,
                          absl::Span<const std::byte> /*rest*/) {
    return false;
  }
  // Returns the next message of that peer, if it has come, it is small, and no receive is posted.
  // No data: there is none. It is valid until Take, which must come before the next wait. Once
  // asked for, such messages count as something that moves.
  virtual absl::StatusOr<absl::Span<const std::byte>> Arrived(int /*peer*/) {
    return absl::Span<const std::byte>();
  }
  virtual void Take(int /*peer*/) {}

  // Returns true if the message is sent and its buffer may be reused.
  virtual bool SendDone(int peer, Ticket ticket) const = 0;
  // Returns true if all bytes of the message are in the buffer.
  virtual bool ReceiveDone(int peer, Ticket ticket) const = 0;

  // Waits until something has moved. An error is final.
  virtual absl::Status Progress() = 0;
};

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_MESSENGER_H_
