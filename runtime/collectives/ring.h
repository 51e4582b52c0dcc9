// SPDX-License-Identifier: Apache-2.0
//
// What the collectives around a ring share: every rank receives from the rank before it, and sends
// to the next one.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RING_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RING_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/schedule.h"

namespace railhead::collectives {

// The ranks beside `rank`.
inline int NextRank(int rank, int world_size) { return (rank + 1) % world_size; }
inline int PreviousRank(int rank, int world_size) { return (rank + world_size - 1) % world_size; }

// A schedule between the ranks beside this one, whose text need not name them.
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

// Memory for messages on their way through a rank that has no buffer of its own for them: the n-th
// message takes a place that the message kAhead earlier has left.
class Passage {
 public:
  // `message`: bytes of the largest one.
  explicit Passage(size_t message)
      : message_(message), memory_(std::make_unique_for_overwrite<std::byte[]>(kAhead * message)) {}

  std::byte* At(size_t n) const { return memory_.get() + n % kAhead * message_; }

 private:
  size_t message_;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RING_H_
