// SPDX-License-Identifier: Apache-2.0
//
// Flow control of one direction, independent of verbs:
//
//   SendCredits     at the sender: frames sent, and how many of them the peer reported consumed
//   ReceiveCredits  at the receiver: frames arrived, consumed, and how many were reported
//
// A frame needs a credit; a report of consumed frames does not. So two sides without credits still
// make progress: each consumes frames and reports them. A report is due when a quarter of the ring
// is unreported, and when anything is unreported while the peer has used its whole window (the peer
// cannot continue, and the sink may depend on it).
//
// Lanes. Frames use the lanes of a connection in turn: frame kFirstFrame + k travels on lane k
// modulo their number. Each lane keeps order, and may be ahead of the others by as many frames as
// there are credits. So the next frame of each lane is known, and the receiver stores one number
// per lane for early frames. Reports travel on any lane.
//
// Counters are cumulative, so a report supersedes all earlier ones. On the wire they have 30 bits
// (slot.h) and are untrusted: both classes reject impossible values.
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
  // Number of the next frame.
  uint64_t sent() const { return sent_; }
  // Number of frames sent and not reported consumed.
  uint64_t outstanding() const { return sent_ - consumed_; }

  // Uses one credit (available() must hold); returns the number of the frame to send.
  uint64_t Take() { return sent_++; }

  // Processes a report of `consumed` (30 bits) on that lane. Returns false if it is impossible:
  // more than sent, or less than reported on the lane before. Another lane may have reported more:
  // lanes may be late, but not by half the counter's range.
  [[nodiscard]] bool Report(uint32_t consumed, size_t lane) {
    constexpr uint64_t kHalf = (uint64_t{kCounterMask} + 1) / 2;
    // The value nearest to the known count.
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

  // Processes frame number `sequence` (30 bits) on that lane and returns its full number. Nullopt
  // if it is not the lane's next one, or the peer had no credit for it.
  [[nodiscard]] std::optional<uint64_t> Arrive(uint32_t sequence, size_t lane) {
    const uint64_t number = next_[lane];
    if (sequence != (number & kCounterMask)) return std::nullopt;
    if (number - reported_ >= slots_) return std::nullopt;
    next_[lane] = number + next_.size();
    arrived_ = *std::min_element(next_.begin(), next_.end());
    return number;
  }

  // Numbers of the first frame that has not arrived, and of the next to consume, in order.
  uint64_t arrived() const { return arrived_; }
  uint64_t consumed() const { return consumed_; }
  bool pending() const { return consumed_ != arrived_; }

  // Returns true if there is something to report.
  bool owed() const { return consumed_ != reported_; }

  // Marks the oldest pending frame as consumed; its slot is free.
  void Consume() { ++consumed_; }

  // Returns true if the peer must be notified now, even by a separate message.
  bool ReportDue() const {
    const uint64_t owed = consumed_ - reported_;
    return owed >= slots_ / 4 || (owed > 0 && arrived_ - reported_ == slots_);
  }

  // Returns the count to send to the peer, and marks it as reported.
  uint64_t TakeReport() { return reported_ = consumed_; }

 private:
  uint64_t slots_;
  std::vector<uint64_t> next_;  // next to arrive on each lane
  uint64_t arrived_ = kFirstFrame;
  uint64_t consumed_ = kFirstFrame;
  uint64_t reported_ = kFirstFrame;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CREDITS_H_
