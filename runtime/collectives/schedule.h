// SPDX-License-Identifier: Apache-2.0
//
// A rank's schedule in a collective: a sequence of messages to send and one to receive. A
// collective defines the messages and their dependencies; Run executes them.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_SCHEDULE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_SCHEDULE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/operation.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Maximum posted and incomplete messages per direction.
inline constexpr size_t kAhead = 16;

class Schedule {
 public:
  static constexpr size_t kNothing = SIZE_MAX;

  // Empty messages are not sent; both sides know which are empty.
  struct Outgoing {
    absl::Span<const std::byte> data;
    size_t needs = kNothing;  // index of the message that brings these bytes
    int peer = -1;
  };
  struct Incoming {
    ReceiveBuffer buffer;
    size_t after = kNothing;  // index of the message that must have left this memory
    size_t needs = kNothing;  // index of the message that brings the operand
    int peer = -1;
  };

  static Outgoing To(int peer, const std::byte* data, size_t size) {
    Outgoing outgoing;
    outgoing.data = absl::MakeConstSpan(data, size);
    outgoing.peer = peer;
    return outgoing;
  }
  static Incoming From(int peer, std::byte* data, size_t size) {
    Incoming incoming;
    incoming.buffer.data = data;
    incoming.buffer.size = size;
    incoming.peer = peer;
    return incoming;
  }

  virtual ~Schedule() = default;
  // Number of messages that this rank sends and receives.
  virtual size_t sends() const = 0;
  virtual size_t receives() const = 0;
  // Return the n-th of them. The messages of all ranks must have a common order in which each
  // depends on earlier ones only, and which every sequence follows: then all complete.
  virtual Outgoing Send(size_t n) const = 0;
  virtual Incoming Receive(size_t n) const = 0;
};

// At most one message each way, independent of each other.
class OneEachWay final : public Schedule {
 public:
  // An empty message is omitted.
  OneEachWay(const Outgoing& outgoing, const Incoming& incoming)
      : outgoing_(outgoing), incoming_(incoming) {}

  size_t sends() const override { return 1; }
  size_t receives() const override { return 1; }
  Outgoing Send(size_t /*n*/) const override { return outgoing_; }
  Incoming Receive(size_t /*n*/) const override { return incoming_; }

 private:
  const Outgoing outgoing_;
  const Incoming incoming_;
};

// Executes the schedule.
absl::Status Run(Messenger& messenger, const Schedule& schedule);

// The first step of a broadcast: what the root sends is what it receives.
inline void CopyAtRoot(int rank, const Operation& operation) {
  if (rank != operation.root) return;
  reduce::Copy(operation.send, operation.receive, operation.count, reduce::Stores::kNormal);
}

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_SCHEDULE_H_
