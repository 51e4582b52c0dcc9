// SPDX-License-Identifier: Apache-2.0
//
// Receives from one peer: posted receives, and their arrived bytes. Pure: no link, rail or clock.
// Used by Peer; send_ledger.h is the counterpart.
//
// Delivery. Receives are numbered in the order of posting; the peer's n-th transfer goes into the
// n-th receive. Take() places a frame, or stores it for a receive that is not posted yet. It never
// rejects one for lack of room: the peer stays within posted receives and kRoom
// (unexpected_queue.h), so it must know the posted receives. posted() is sent with every frame to
// the peer; MustTell() is true if it needs a separate frame.
//
// After the loss of a rail frames may arrive twice; duplicates are dropped.
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

  // Posts the next receive, of call `call`, and fills it with early frames. Returns its number.
  // Errors of early frames are returned by the next Take() or status().
  uint64_t Post(const collectives::ReceiveBuffer& buffer, collectives::Call call);
  bool Done(uint64_t number) const {
    return number < receives_.begin() || (number < receives_.end() && receives_[number].done);
  }

  // Places a data frame. Errors are final: Internal, with both sides' values if the ranks
  // contradict each other. But for Unavailable: memory of a device cannot be written now, and
  // nothing has changed; the frame may be offered again.
  absl::Status Take(const transport::FrameHeader& header, absl::Span<const std::byte> payload);
  const absl::Status& status() const { return error_; }
  // Returns memory into which the payload of an arriving frame may be written, so that Take finds
  // it there; null if it must not be.
  std::byte* PlaceFor(const transport::FrameHeader& header, size_t size) const;
  // Allows duplicates from now on.
  void ExpectRepeats() { may_repeat_ = true; }

  // Total receives posted, for the peer.
  uint64_t posted() const { return receives_.end(); }
  // Returns true if the peer may soon have to stop because it does not know the posted receives.
  bool MustTell() const { return untold_ >= kRoom / 4; }
  // Call when posted() is sent to the peer.
  void Told() { untold_ = 0; }
  // Call when that may have been lost.
  void TellAgain() { untold_ = kRoom; }

  // Returns true if every posted receive is done.
  bool empty() const { return receives_.empty(); }
  // Increases with every frame that has new data.
  uint64_t progress() const { return progress_; }
  // Oldest receive that is not done, for messages; there must be one.
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

  // Values both sides must agree on for a transfer. Stored for recent receives, done or not: after
  // a loss, frames of a finished transfer are dropped, but only after this check.
  struct Agreement {
    uint64_t size = 0;
    collectives::Call call;
  };
  static constexpr uint64_t kKeptAgreements = 64;

  // Returns OK if the peer and this side agree on that posted transfer.
  absl::Status Compare(const transport::FrameHeader& header) const;
  absl::Status Place(const transport::FrameHeader& header, absl::Span<const std::byte> payload);
  void Retire();

  std::function<std::string()> peer_;
  SlotQueue<Receive> receives_;
  std::array<Agreement, kKeptAgreements> agreements_;  // by number modulo their count
  UnexpectedQueue unexpected_;
  bool may_repeat_ = false;
  size_t untold_ = 0;  // by FrameCost, of receives that the peer does not know
  uint64_t progress_ = 0;
  absl::Status error_;
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_RECEIVE_LEDGER_H_
