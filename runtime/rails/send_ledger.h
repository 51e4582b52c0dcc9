// SPDX-License-Identifier: Apache-2.0
//
// Sends to one peer: posted sends, and the state of each of their chunks. Pure: no link or clock.
// Used by Peer; receive_ledger.h is the counterpart.
//
// Life of a chunk:
//
//   waiting ──Handed(rail)──> in flight ──Consumed(rail)──> consumed
//      ^                          |
//      └────────RailLost(rail)────┘        sent again before anything new
//
// A chunk is cut when it is first given to a rail, and keeps transfer, offset and size. It is
// released when the link that last carried it reports it consumed.
//
// Credits. Next() returns no chunk of a transfer that the peer has not posted, except within the
// peer's room for early frames (kRoom, unexpected_queue.h), which lets small messages leave at
// once. Repeated chunks have their place at the peer already.
//
// Memory. A send of more than kCopied bytes is done when all of it is consumed, so its memory must
// live until then. Its values may change earlier: an algorithm may overwrite a part as soon as a
// response proves its arrival, possibly before the acknowledgement. A repeat of such a chunk
// carries wrong bytes and is dropped, since that response proves that the peer has the right ones.
// Smaller sends are copied, and are done when rails have taken them. CopyTail() does the same for
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
#include "runtime/collectives/registered_memory.h"
#include "runtime/rails/unexpected_queue.h"

namespace railhead::rails {

// In bytes; copying a message up to this size costs less than waiting for its acknowledgement.
inline constexpr size_t kCopied = size_t{16} << 10;

// Maximum bytes that CopyTail copies.
inline constexpr size_t kMaxTail = size_t{64} << 10;

// Bytes [offset, offset + size) of a transfer.
struct Chunk {
  uint64_t transfer = 0;
  size_t offset = 0;
  size_t size = 0;
  uint16_t lost_rails = 0;  // bits of those that have lost it (transport::LostRailBit)
};

class SendLedger {
 public:
  explicit SendLedger(size_t rails) : under_way_(rails) {}

  // Posts the next send, in chunks of `chunk` bytes. `data` must live until Done. `may_copy`: the
  // CPU may read it. Returns its number.
  uint64_t Post(absl::Span<const std::byte> data, collectives::Call call, size_t chunk,
                bool may_copy);
  // The same for memory that NICs read, and write to `to` (Messenger::PostDirect).
  uint64_t PostDirect(absl::Span<const std::byte> data, collectives::Call call, size_t chunk,
                      const collectives::RemoteMemory& to);
  // Returns true if the memory of the send may be reused.
  bool Done(uint64_t number) const;

  // Returns the next chunk for a rail, repeats first. Nullopt if there is none, or the peer has
  // neither posted its receive nor room for it.
  std::optional<Chunk> Next();
  bool next_is_repeat() const { return !repeats_.empty(); }
  // Header fields and bytes of a chunk.
  struct Content {
    absl::Span<const std::byte> bytes;
    collectives::Call call;
    size_t transfer_size = 0;
    bool copied = false;
    const collectives::RemoteMemory* to = nullptr;  // of the transfer, if it has any
  };
  Content ContentOf(const Chunk& chunk) const;

  // Notes that the rail has taken the chunk from Next(), or the start of it if it is new.
  void Handed(size_t rail, const Chunk& chunk);
  // Notes that the rail has taken a frame without data, which Consumed counts.
  void HandedNote(size_t rail);
  // Notes that the peer has consumed all frames of the rail but the last `left`. Returns true if it
  // was not known of some of them.
  bool Consumed(size_t rail, uint64_t left);
  // Queues unconsumed chunks of the rail again. Returns their bytes.
  uint64_t RailLost(size_t rail);
  // Processes the peer's total of posted receives, modulo 2^32. Older values may arrive later. An
  // error if the value is impossible.
  absl::Status PeerPosted(uint32_t count);

  // Copies unconsumed data of sends that are entirely with rails, if it is at most kMaxTail.
  // Returns true if that completed a send.
  bool CopyTail();

  // Bytes that no rail has taken.
  uint64_t waiting() const { return waiting_; }
  // Returns true if everything posted is known to be consumed.
  bool empty() const { return sends_.empty(); }
  bool UnderWay(size_t rail) const { return !under_way_[rail].empty(); }
  // Increases as sends come nearer to completion; repeats do not count. Until a rail is lost, what
  // rails take counts; afterwards only what is consumed, because a rail may take and lose more each
  // time that it returns.
  uint64_t progress() const { return progress_; }
  // Oldest send that is not consumed, for messages; there must be one.
  struct Oldest {
    uint64_t number = 0;
    size_t handed = 0;
    size_t consumed = 0;
    size_t size = 0;
    bool posted = false;  // by the peer, as far as known
  };
  Oldest oldest() const;

 private:
  static constexpr uint64_t kNote = UINT64_MAX;  // transfer of frames without data

  struct Send {
    absl::Span<const std::byte> data;  // the transfer's bytes from `begin`
    size_t begin = 0;                  // earlier bytes are not needed
    size_t size = 0;
    collectives::Call call;
    size_t chunk = 0;
    size_t handed = 0;
    size_t consumed = 0;
    bool may_copy = true;
    bool copied = false;
    bool direct = false;
    collectives::RemoteMemory to;
    std::vector<std::byte> copy;  // keeps its memory for the next use of this slot

    bool complete() const { return consumed == size; }
  };

  bool MayHand(const Chunk& chunk) const;
  void Retire();

  SlotQueue<Send> sends_;                    // starts with the oldest unconsumed one
  uint64_t next_ = 0;                        // the oldest that rails have not taken entirely
  uint64_t waiting_ = 0;                     // bytes that no rail has taken
  std::deque<Chunk> repeats_;                // in order of transfers
  std::vector<SlotQueue<Chunk>> under_way_;  // by rail, in order of Handed

  // Credits: receives posted by the peer, and bytes taken by rails of each transfer that it has not
  // posted, by FrameCost.
  uint64_t peer_posted_ = 0;
  SlotQueue<size_t> early_;
  size_t early_cost_ = 0;

  uint64_t progress_ = 0;
  bool any_lost_ = false;  // rail
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_SEND_LEDGER_H_
