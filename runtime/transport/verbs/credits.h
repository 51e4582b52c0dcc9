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
// Counters are cumulative, so a report makes every earlier one redundant. On the wire they are 30
// bits wide (slot.h) and come from another machine: both classes refuse impossible values.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CREDITS_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CREDITS_H_

#include <cstdint>

#include "runtime/transport/verbs/slot.h"

namespace railhead::transport::verbs {

class SendCredits {
 public:
  explicit SendCredits(uint32_t slots) : slots_(slots) {}

  bool available() const { return sent_ - consumed_ < slots_; }
  // The number of the next frame.
  uint64_t sent() const { return sent_; }
  // How many were sent and not reported as consumed.
  uint64_t outstanding() const { return sent_ - consumed_; }

  // Uses one credit (available() must hold); returns the number of the frame to send.
  uint64_t Take() { return sent_++; }

  // The peer reported `consumed` (30 bits). False when it cannot be: more than was sent.
  [[nodiscard]] bool Report(uint32_t consumed) {
    const uint64_t news = (consumed - consumed_) & kCounterMask;
    if (news > sent_ - consumed_) return false;
    consumed_ += news;
    return true;
  }

 private:
  uint64_t slots_;
  uint64_t sent_ = kFirstFrame;
  uint64_t consumed_ = kFirstFrame;
};

class ReceiveCredits {
 public:
  explicit ReceiveCredits(uint32_t slots) : slots_(slots) {}

  // A frame with number `sequence` (30 bits) arrived. False when it is not the next one, or when
  // the peer had no credit for it.
  [[nodiscard]] bool Arrive(uint32_t sequence) {
    if (sequence != (arrived_ & kCounterMask)) return false;
    if (arrived_ - reported_ >= slots_) return false;
    ++arrived_;
    return true;
  }

  // The numbers of the next frame to arrive and of the next to consume.
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
  uint64_t arrived_ = kFirstFrame;
  uint64_t consumed_ = kFirstFrame;
  uint64_t reported_ = kFirstFrame;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CREDITS_H_
