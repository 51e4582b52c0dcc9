// SPDX-License-Identifier: Apache-2.0
//
// What is sent to one peer: posted sends, and what became of each of their chunks. Pure: knows no
// link and no clock. Used by Peer; receive_ledger.h is the other side of it.
//
// Life of a chunk:
//
//   waiting ──Handed(rail)──> under way ──Consumed(rail)──> consumed
//      ^                          |
//      └────────RailLost(rail)────┘        goes again before anything new
//
// A chunk is cut when it is first handed to a rail, and keeps transfer, offset and size for life.
// It is forgotten when the link that carried it last says that the peer has consumed it.
//
// Credits. Next() gives no chunk of a transfer that the peer has not posted, except within the room
// that the peer keeps for early frames (kRoom, unexpected_queue.h). Small messages leave at once by
// that room. Chunks that go again have their place at the peer already.
//
// Memory. A send of more than kCopied bytes is done when all of it is consumed, so its memory lives
// until then. It need not keep its values: an algorithm may overwrite a part as soon as its arrival
// is proven by what comes back, which can be before the acknowledgement. A repeat of such a chunk
// carries wrong bytes and is dropped, since that proof shows that the peer has the right ones.
// Smaller sends are copied, and are done once rails have taken them. CopyTail() does the same for
// the last bytes of longer ones.
#ifndef RAILHEAD_RUNTIME_RAILS_SEND_LEDGER_H_
#define RAILHEAD_RUNTIME_RAILS_SEND_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/slot_queue.h"
#include "runtime/collectives/call.h"
#include "runtime/rails/unexpected_queue.h"

namespace railhead::rails {

// Up to this size, in bytes, a copy of a message costs less than waiting for its acknowledgement.
inline constexpr size_t kCopied = size_t{16} << 10;

// CopyTail copies at most this much, in bytes.
inline constexpr size_t kMaxTail = size_t{64} << 10;

// Bytes [offset, offset + size) of a transfer.
struct Chunk {
  uint64_t transfer = 0;
  size_t offset = 0;
  size_t size = 0;
};

class SendLedger {
 public:
  explicit SendLedger(size_t rails) : under_way_(rails) {}

  // Posts the next send, whose chunks are of `chunk` bytes. `data` lives until Done. `may_copy`:
  // the CPU may read it. Returns its number.
  uint64_t Post(absl::Span<const std::byte> data, collectives::Call call, size_t chunk,
                bool may_copy);
  // Whether the memory of the send is the caller's again.
  bool Done(uint64_t number) const;

  // The next chunk for a rail: those that go again first. Nothing if there is none, or if the peer
  // has neither posted its receive nor room for it.
  std::optional<Chunk> Next();
  bool next_is_repeat() const { return !repeats_.empty(); }
  // What a frame says of a chunk, and its bytes.
  struct Content {
    absl::Span<const std::byte> bytes;
    collectives::Call call;
    size_t transfer_size = 0;
    bool copied = false;
  };
  Content ContentOf(const Chunk& chunk) const;

  // The rail has taken the chunk that Next() gave, or the beginning of it if it is new.
  void Handed(size_t rail, const Chunk& chunk);
  // The rail has taken a frame without data, which counts for Consumed.
  void HandedNote(size_t rail);
  // Of what the rail was handed, the peer has consumed all but the last `left` frames.
  void Consumed(size_t rail, uint64_t left);
  // What the rail was handed and is not consumed goes again. Returns its bytes.
  uint64_t RailLost(size_t rail);
  // The peer has posted that many receives in all, modulo 2^32. Older news may come later. An error
  // if that cannot be.
  absl::Status PeerPosted(uint32_t count);

  // Copies what is not known to be consumed of sends that are wholly handed out, if that is no more
  // than kMaxTail. Returns whether a send is done that was not.
  bool CopyTail();

  // Bytes that no rail has.
  uint64_t waiting() const { return waiting_; }
  // Whether all that was posted is known to be consumed.
  bool empty() const { return sends_.empty(); }
  bool UnderWay(size_t rail) const { return !under_way_[rail].empty(); }
  // Grows with everything that gets a send nearer to its end. Repeats are no progress.
  uint64_t progress() const { return progress_; }
  // The oldest that is not consumed, for messages; there is one.
  struct Oldest {
    uint64_t number = 0;
    size_t handed = 0;
    size_t consumed = 0;
    size_t size = 0;
    bool posted = false;  // by the peer, as far as is known
  };
  Oldest oldest() const;

 private:
  static constexpr uint64_t kNote = UINT64_MAX;  // the transfer of a frame without data

  struct Send {
    absl::Span<const std::byte> data;  // the transfer's bytes from `begin` on
    size_t begin = 0;                  // earlier ones are not needed any more
    size_t size = 0;
    collectives::Call call;
    size_t chunk = 0;
    size_t handed = 0;
    size_t consumed = 0;
    bool may_copy = true;
    bool copied = false;
    std::vector<std::byte> copy;  // keeps its memory for the next user of this place

    bool complete() const { return consumed == size; }
  };

  bool MayHand(const Chunk& chunk) const;
  void Retire();

  SlotQueue<Send> sends_;                    // begins with the oldest that is not consumed
  uint64_t next_ = 0;                        // the oldest that has not been handed out whole
  uint64_t waiting_ = 0;                     // bytes that no rail has
  std::deque<Chunk> repeats_;                // in the order of transfers
  std::vector<SlotQueue<Chunk>> under_way_;  // by rail, in the order in which they were handed

  // Credits: how many receives the peer has posted, and what has been handed of each transfer that
  // it has not posted, by FrameCost.
  uint64_t peer_posted_ = 0;
  SlotQueue<size_t> early_;
  size_t early_cost_ = 0;

  uint64_t progress_ = 0;
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_SEND_LEDGER_H_
