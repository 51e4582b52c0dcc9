// SPDX-License-Identifier: Apache-2.0
//
// What arrives from one peer: posted receives, and which of their bytes are there. Pure: knows no
// link, no rail and no clock. Used by Peer; send_ledger.h is the other side of it.
//
// Delivery. Receives are numbered in the order in which they are posted, and the n-th transfer of
// the peer goes into the n-th receive. Take() places a frame, or keeps it for a receive that is
// still to be posted. It never refuses one: the peer sends no more than what is posted and kRoom
// (unexpected_queue.h), so it must be told of posted receives. posted() goes with every frame to
// the peer; MustTell() says when it is worth a frame of its own.
//
// Frames may come twice once a rail was lost; then those that are there already are dropped.
#ifndef RAILHEAD_RUNTIME_RAILS_RECEIVE_LEDGER_H_
#define RAILHEAD_RUNTIME_RAILS_RECEIVE_LEDGER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/slot_queue.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/messenger.h"
#include "runtime/rails/range_set.h"
#include "runtime/rails/unexpected_queue.h"
#include "runtime/transport/link.h"

namespace railhead::rails {

class ReceiveLedger {
 public:
  // `peer` names the other rank in errors ("rank 1 (pod b)").
  explicit ReceiveLedger(std::function<std::string()> peer) : peer_(std::move(peer)) {}

  // Posts the next receive, which belongs to `call`, and fills it with what has come early. Returns
  // its number. What is wrong with early frames is the error of the next Take() or status().
  uint64_t Post(const collectives::ReceiveBuffer& buffer, collectives::Call call);
  bool Done(uint64_t number) const {
    return number < receives_.begin() || (number < receives_.end() && receives_[number].done);
  }

  // Places a frame that carries data. Errors are final: Internal, with both sides' values where the
  // ranks contradict each other.
  absl::Status Take(const transport::FrameHeader& header, absl::Span<const std::byte> payload);
  const absl::Status& status() const { return error_; }
  // Where the payload of a frame that is arriving may be written at once, so that Take finds it
  // there; null if it must not be.
  std::byte* PlaceFor(const transport::FrameHeader& header, size_t size) const;
  // From now on frames may come twice.
  void ExpectRepeats() { may_repeat_ = true; }

  // How many receives were posted, for the peer.
  uint64_t posted() const { return receives_.end(); }
  // Whether the peer may soon have to stop for want of news of posted receives.
  bool MustTell() const { return untold_ >= kRoom / 4; }
  // The peer is being told of all of them.
  void Told() { untold_ = 0; }
  // What the peer was told may have been lost.
  void TellAgain() { untold_ = kRoom; }

  // Whether every posted receive is done.
  bool empty() const { return receives_.empty(); }
  // Grows with every frame that brings something new.
  uint64_t progress() const { return progress_; }
  // The oldest that is not done, for messages; there is one.
  struct Oldest {
    uint64_t number = 0;
    size_t arrived = 0;
    size_t size = 0;
  };
  Oldest oldest() const {
    const Receive& receive = receives_[receives_.begin()];
    return {receives_.begin(), receive.arrived.total(), receive.buffer.size};
  }

 private:
  struct Receive {
    collectives::ReceiveBuffer buffer;
    RangeSet arrived;
    bool done = false;
  };

  // What both sides must say of a transfer. Kept of the latest receives, done or not: once frames
  // may come twice, those of a finished transfer are dropped, but not before this was compared.
  struct Agreement {
    uint64_t size = 0;
    collectives::Call call;
  };
  static constexpr uint64_t kKeptAgreements = 64;

  // OK if the peer says the same of that transfer, which has been posted, as this side.
  absl::Status Compare(const transport::FrameHeader& header) const;
  absl::Status Place(const transport::FrameHeader& header, absl::Span<const std::byte> payload);
  void Retire();

  std::function<std::string()> peer_;
  SlotQueue<Receive> receives_;
  std::array<Agreement, kKeptAgreements> agreements_;  // by number, modulo their number
  UnexpectedQueue unexpected_;
  bool may_repeat_ = false;
  size_t untold_ = 0;  // by FrameCost, of receives of which the peer was not told
  uint64_t progress_ = 0;
  absl::Status error_;
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_RECEIVE_LEDGER_H_
