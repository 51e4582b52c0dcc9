// SPDX-License-Identifier: Apache-2.0
//
// Frames of transfers for which no receive has been posted yet, as in MPI. Pure; used by
// ReceiveLedger.
//
// Its size is what makes every send legal at any time: a sender counts what it sends beyond the
// peer's posted receives in the same units (FrameCost), and stops before kRoom. So an arrived frame
// always has a place, and a link never has to hold one back. Acknowledgements and credits that
// travel behind it in the same stream are therefore always read.
#ifndef RAILHEAD_RUNTIME_RAILS_UNEXPECTED_QUEUE_H_
#define RAILHEAD_RUNTIME_RAILS_UNEXPECTED_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/base/slot_queue.h"
#include "runtime/transport/link.h"

namespace railhead::rails {

// Maximum total of a sender's frames of transfers that the peer has not posted, in bytes by
// FrameCost.
inline constexpr size_t kRoom = (size_t{1} << 20) + (size_t{64} << 10);

// Bytes that a frame takes of that room: its payload and what is kept about it.
constexpr size_t FrameCost(size_t payload) { return payload + 64; }

// Maximum number of transfers of a sender beyond the last one that the peer has posted. Transfers
// without bytes have no frames and cost no room, so they need a separate limit.
inline constexpr uint64_t kMaxTransfersAhead = kRoom / FrameCost(0);

class UnexpectedQueue {
 public:
  using Visitor = absl::FunctionRef<void(const transport::FrameHeader& header,
                                         absl::Span<const std::byte> payload)>;

  // Copies a frame; of a placed one the header and the size. A frame that is there already is
  // dropped. Returns false if the sender has used more room than it has, or is too far ahead.
  bool Put(const transport::FrameHeader& header, absl::Span<const std::byte> payload);

  // Visits the frames of the next transfer, and drops them. To be called for each transfer in turn,
  // as its receive is posted.
  void TakeNext(Visitor visitor);

  size_t used() const { return used_; }

 private:
  // One transfer that keeps more memory than this gives it back when it is taken.
  static constexpr size_t kKeptBytes = size_t{64} << 10;

  struct Frame {
    transport::FrameHeader header;
    size_t begin = 0;  // of the payload in `bytes`
    size_t size = 0;
  };
  struct Transfer {
    std::vector<Frame> frames;
    std::vector<std::byte> bytes;
  };

  SlotQueue<Transfer> transfers_;  // by number; begins with the next to be posted
  size_t used_ = 0;
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_UNEXPECTED_QUEUE_H_
