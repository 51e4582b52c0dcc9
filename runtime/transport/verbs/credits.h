// SPDX-License-Identifier: Apache-2.0
//
// Who may write which slot when. The two halves of one direction's flow control, free of any verbs:
//
//   SendCredits     at the sender: frames sent, and how many of them the peer said it has consumed.
//   ReceiveCredits  at the receiver: frames arrived, consumed, and how many of those were reported.
//
// A frame needs a credit; a report of consumed frames does not. So two sides that are both out of
// credits still get out: each consumes what arrived and reports it. A report is due when a quarter
// of the ring is owed, and also when anything is owed while the peer has used up its whole window
// (then it cannot go on, and whatever our sink waits for may depend on it).
//
// Lanes. Frames take turns among the lanes of a connection: frame kFirstFrame + k travels on lane
// k modulo their number. Each lane keeps its order, and any may be ahead of the others by as many
// frames as there are credits. So the next frame of each lane is known, and all that the receiver
// must remember of what came early is one number for each lane. Reports travel on any lane.
//
// Counters are cumulative, so a report makes every earlier one redundant. On the wire they are 30
// bits wide (slot.h) and come from another machine: both classes refuse impossible values.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CREDITS_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CREDITS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/transport/verbs/slot.h"

namespace railhead::transport::verbs {

class SendCredits {
 public:
  SendCredits(uint32_t slots, size_t lanes) : slots_(slots), reported_(lanes, kFirstFrame) {}

  bool available() const { return sent_ - consumed_ < slots_; }
  // The number of the next frame.
  uint64_t sent() const { return sent_; }
  // How many were sent and not reported as consumed.
  uint64_t outstanding() const { return sent_ - consumed_; }

  // Uses one credit (available() must hold); returns the number of the frame to send.
  uint64_t Take() { return sent_++; }

  // The peer reported `consumed` (30 bits) on that lane. False when it cannot be: more than was
  // sent, or less than was reported there before. On another lane there may have been more: a lane
  // may be late, though not by half the counter.
  [[nodiscard]] bool Report(uint32_t consumed, size_t lane) {
    constexpr uint64_t kHalf = (uint64_t{kCounterMask} + 1) / 2;
    // What is nearest to the count that is known.
    const uint64_t count = consumed_ + ((consumed - consumed_ + kHalf) & kCounterMask) - kHalf;
    if (count > sent_ || count < reported_[lane]) return false;
    reported_[lane] = count;
    consumed_ = std::max(consumed_, count);
    return true;
  }

 private:
  uint64_t slots_;
  uint64_t sent_ = kFirstFrame;
  uint64_t consumed_ = kFirstFrame;
  std::vector<uint64_t> reported_;  // on each lane
};

class ReceiveCredits {
 public:
  ReceiveCredits(uint32_t slots, size_t lanes) : slots_(slots) {
    for (size_t lane = 0; lane < lanes; ++lane) next_.push_back(kFirstFrame + lane);
  }

  // A frame with number `sequence` (30 bits) arrived on that lane: its whole number. None when it
  // is not the lane's next one, or when the peer had no credit for it.
  [[nodiscard]] std::optional<uint64_t> Arrive(uint32_t sequence, size_t lane) {
    const uint64_t number = next_[lane];
    if (sequence != (number & kCounterMask)) return std::nullopt;
    if (number - reported_ >= slots_) return std::nullopt;
    next_[lane] = number + next_.size();
    arrived_ = *std::min_element(next_.begin(), next_.end());
    return number;
  }

  // The number of the first frame that has not arrived, and of the next to consume: they are
  // consumed in their order.
  uint64_t arrived() const { return arrived_; }
  uint64_t consumed() const { return consumed_; }
  bool pending() const { return consumed_ != arrived_; }

  // Whether there is anything to report.
  bool owed() const { return consumed_ != reported_; }

  // The oldest pending frame was taken; its slot is free.
  void Consume() { ++consumed_; }

  // Whether the peer must be told now, even at the price of a message of its own.
  bool ReportDue() const {
    const uint64_t owed = consumed_ - reported_;
    return owed >= slots_ / 4 || (owed > 0 && arrived_ - reported_ == slots_);
  }

  // The count to tell the peer; from now on it counts as told.
  uint64_t TakeReport() { return reported_ = consumed_; }

 private:
  uint64_t slots_;
  std::vector<uint64_t> next_;  // to arrive on each lane
  uint64_t arrived_ = kFirstFrame;
  uint64_t consumed_ = kFirstFrame;
  uint64_t reported_ = kFirstFrame;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CREDITS_H_
