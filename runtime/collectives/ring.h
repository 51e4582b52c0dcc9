// SPDX-License-Identifier: Apache-2.0
//
// Helpers of ring collectives: every rank receives from the previous rank and sends to the next.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RING_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RING_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/schedule.h"

namespace railhead::collectives {

// Neighbours of `rank` on the ring.
inline int NextRank(int rank, int world_size) { return (rank + 1) % world_size; }
inline int PreviousRank(int rank, int world_size) { return (rank + world_size - 1) % world_size; }

// A schedule between ring neighbours, which subclasses need not name.
class RingSchedule : public Schedule {
 public:
  RingSchedule(int rank, int world_size)
      : next_(NextRank(rank, world_size)), previous_(PreviousRank(rank, world_size)) {}

  Outgoing Send(size_t n) const final {
    Outgoing outgoing = SendNext(n);
    outgoing.peer = next_;
    return outgoing;
  }
  Incoming Receive(size_t n) const final {
    Incoming incoming = ReceivePrevious(n);
    incoming.peer = previous_;
    return incoming;
  }

 private:
  virtual Outgoing SendNext(size_t n) const = 0;
  virtual Incoming ReceivePrevious(size_t n) const = 0;

  int next_;
  int previous_;
};

// Bounce buffers for messages forwarded by a rank without a buffer for them: message n uses the
// place of message n - kAhead.
class Passage {
 public:
  // `message`: size of the largest message in bytes.
  explicit Passage(size_t message)
      : message_(message), memory_(std::make_unique_for_overwrite<std::byte[]>(kAhead * message)) {}

  std::byte* At(size_t n) const { return memory_.get() + n % kAhead * message_; }

 private:
  size_t message_;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RING_H_
