// SPDX-License-Identifier: Apache-2.0
//
// What one rank does in a collective: a row of messages that it sends and a row that it receives. A
// collective says what they are and what each has to wait for; this is the waiting.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_SCHEDULE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_SCHEDULE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// At most so many messages of a direction are posted and not yet done.
inline constexpr size_t kAhead = 16;

class Schedule {
 public:
  static constexpr size_t kNothing = SIZE_MAX;

  // Empty ones are not sent; both sides know which they are.
  struct Outgoing {
    absl::Span<const std::byte> data;
    size_t needs = kNothing;  // the number of the message that brings these bytes
    int peer = -1;
  };
  struct Incoming {
    ReceiveBuffer buffer;
    size_t after = kNothing;  // the number of the message that must have left this memory before
    size_t needs = kNothing;  // the number of the message that brings the operand
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
  // How many messages this rank sends and receives.
  virtual size_t sends() const = 0;
  virtual size_t receives() const = 0;
  // The n-th of them. The messages of all ranks can be put in one order, in which each waits only
  // for earlier ones, and which every row follows: so all of them end.
  virtual Outgoing Send(size_t n) const = 0;
  virtual Incoming Receive(size_t n) const = 0;
};

// At most one message each way, which do not wait for each other.
class OneEachWay final : public Schedule {
 public:
  // An empty one is none.
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

// Does it.
absl::Status Run(Messenger& messenger, const Schedule& schedule);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_SCHEDULE_H_
