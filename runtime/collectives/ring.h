// SPDX-License-Identifier: Apache-2.0
//
// What the collectives around a ring share: every rank receives a row of messages from the rank
// before it, and sends a row of messages to the next one. A collective says what they are and what
// each has to wait for; this is the waiting.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RING_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RING_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// At most so many messages of a direction are posted and not yet done.
inline constexpr size_t kRingAhead = 16;

// One rank's share of a collective.
class RingSchedule {
 public:
  static constexpr size_t kNothing = SIZE_MAX;

  // Empty ones are not sent; both sides know which they are.
  struct Outgoing {
    absl::Span<const std::byte> data;
    size_t needs = kNothing;  // the number of the message that brings these bytes
  };
  struct Incoming {
    ReceiveBuffer buffer;
    size_t after = kNothing;  // the number of the message that must have left this memory before
  };

  virtual ~RingSchedule() = default;
  // How many messages this rank sends and receives.
  virtual size_t sends() const = 0;
  virtual size_t receives() const = 0;
  // The n-th of them. It waits only for messages that end, whatever this one does: around a whole
  // ring, for those with a smaller number.
  virtual Outgoing Send(size_t n) const = 0;
  virtual Incoming Receive(size_t n) const = 0;
};

// Does it. `next` and `previous` may be the same rank.
absl::Status RunRing(Messenger& messenger, int previous, int next, const RingSchedule& schedule);

// The ranks beside `rank`.
inline int NextRank(int rank, int world_size) { return (rank + 1) % world_size; }
inline int PreviousRank(int rank, int world_size) { return (rank + world_size - 1) % world_size; }

// Memory for messages on their way through a rank that has no buffer of its own for them: the n-th
// message takes a place that the message kRingAhead earlier has left.
class Passage {
 public:
  // `message`: bytes of the largest one.
  explicit Passage(size_t message)
      : message_(message),
        memory_(std::make_unique_for_overwrite<std::byte[]>(kRingAhead * message)) {}

  std::byte* At(size_t n) const { return memory_.get() + n % kRingAhead * message_; }

 private:
  size_t message_;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RING_H_
