// SPDX-License-Identifier: Apache-2.0
//
// All rails to one other rank. Transfers wait in one queue, and the rails pull from it: whichever
// has room takes the next chunk, unless that is better off waiting for a faster one (shares.h). So
// equal rails carry equal shares, also of many small transfers, and a slow or busy rail holds
// nobody up.
//
// A rail that is lost (its link must recover; see link.h). What it was given and the peer is not
// known to have taken goes over the other rails, and the rail is dialed until it is back. Nothing
// is missed: a chunk is forgotten only when the link on which it went last says that the peer has
// taken it. Nothing is done twice: a chunk keeps its transfer, offset and size for life, and the
// receiver drops what it has, or what belongs to a transfer that it has completed. The original may
// even come after the repeat, out of a connection that only this side takes for lost, so once a
// rail was lost all chunks are treated so; before, a chunk that comes twice is an error.
//
// The memory of a repeat. A transfer of more than 16 KiB is done when all of it is acknowledged, so
// its memory lives until then. It need not keep its values: a ring may overwrite a part as soon as
// its arrival everywhere is proven by what comes back, which can be before the acknowledgement. A
// repeat of such a chunk carries wrong bytes, and is dropped, because that proof is just that the
// receiver has the right ones. Smaller transfers are copied and done once the rails have taken
// them, so that nobody waits for a small message to be acknowledged. And where nothing is left to
// wait for but the acknowledgement of the last bytes of longer ones, those are copied, too.
//
// Every frame says which rails its sender has lost. Who learns so of one that seems to work gives
// it up too: else its next chunk on it would have to be missed first, after the peer's was.
//
// Who copies runs ahead: its next messages may reach a receiver that still waits for a lost one,
// and stand in a link before the repeat of it. The receiver puts them aside (stash.h), and a sender
// goes no further past an unacknowledged copy than the receiver can put aside. Transfers that were
// not copied need no such care: as they are done only when acknowledged, whoever sends them is
// never further ahead than the receiver has asked for, or will ask for without the missing chunk.
#ifndef RAILHEAD_RUNTIME_RAILS_PEER_H_
#define RAILHEAD_RUNTIME_RAILS_PEER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/log.h"
#include "runtime/base/slot_queue.h"
#include "runtime/base/traffic.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/messenger.h"
#include "runtime/rails/range_set.h"
#include "runtime/rails/shares.h"
#include "runtime/rails/stash.h"
#include "runtime/transport/link.h"

namespace railhead::rails {

// Up to this size a copy of a message costs less than an acknowledgement.
inline constexpr size_t kCopied = size_t{16} << 10;

// And no more is copied of longer ones so as not to wait for their acknowledgement.
inline constexpr size_t kKept = size_t{64} << 10;

// What people call a rail.
struct RailName {
  int rail = 0;
  std::string device;     // HCA, or network interface for TCP
  int port = 0;           // of the HCA; 0 for TCP
  std::string transport;  // "verbs" or "tcp"
};

// "rail 0 (rxe0 port 1, verbs)".
std::string ToString(const RailName& name);

struct Rail {
  RailName name;
  std::unique_ptr<transport::Link> link;
};

// What has become of a rail. Written by the peer's thread alone.
struct RailHealth {
  std::atomic<bool> up{true};
  std::atomic<bool> lost{false};       // it is not up, and was
  std::atomic<uint64_t> failovers{0};  // how often it was lost
  std::atomic<uint64_t> returns{0};    // how often it came back
  std::atomic<double> rate{0};         // measured bytes per second
};

// Used by one thread at a time, except where said.
class Peer {
 public:
  // `name` is the other rank's ("rank 1 (pod b)"). There is at least one rail. What happens to
  // rails is told to `log`.
  Peer(std::string name, std::vector<Rail> rails, Logger log = {});

  // What transfers that are posted from now on belong to; both sides must agree.
  void Expect(collectives::Call call) { call_ = call; }
  // Whether little is copied; see Mesh.
  void CopySmall(bool copies) { copies_small_ = copies; }
  uint64_t PostSend(absl::Span<const std::byte> data);
  uint64_t PostReceive(const collectives::ReceiveBuffer& buffer);
  // A sent transfer is done when its memory is free again.
  bool SendDone(uint64_t ticket) const;
  bool ReceiveDone(uint64_t ticket) const;

  // Whether nothing is left to be done but to hear that what was sent has been taken.
  bool OnlyUnacknowledged() const { return waiting_ == 0 && receives_.empty(); }
  // Copies what the peer is not known to have taken, if it is little and the rails do without the
  // original, so that the transfers are done. Returns whether any is that was not.
  bool KeepUnacknowledged();

  // Whether every posted transfer has arrived.
  bool Idle() const { return sends_.empty() && receives_.empty(); }
  // Whether every sent one is known to have.
  bool Acknowledged() const { return sends_.empty(); }
  // Whether nothing depends on further polling, as long as no rail is lost.
  bool Flushed() const;
  // Whether time alone may give Poll something to do.
  bool Restless() const;
  // Whether that may be soon: something waits, though a rail has room.
  bool HeldBack() const { return held_back_; }

  // Moves everything that can move; small messages have moved already, if they could. Returns
  // whether anything did. An error is final; it names the rail and the peer.
  absl::StatusOr<bool> Poll(absl::Time now);
  // Grows as transfers come nearer to their end: whatever rails do that come and go and repeat
  // themselves is no progress.
  uint64_t progress() const { return progress_; }
  // Tells the other side what it has not been told of what has arrived.
  absl::Status Acknowledge() {
    return OnAll([](transport::Link& link) { return link.Acknowledge(); });
  }
  // Must come before a wait for the links' descriptors.
  absl::Status Arm(transport::Wake wake) {
    return OnAll([wake](transport::Link& link) { return link.Arm(wake); });
  }

  // What has been done of the oldest transfers, for the message of a stalled collective.
  std::string DescribeProgress() const;

  // Any thread: names, counters and states of the rails. They live as long as the peer.
  size_t rail_count() const { return rails_.size(); }
  const RailName& rail_name(size_t index) const { return rails_[index].name; }
  const transport::LinkStats& rail_stats(size_t index) const { return rails_[index].link->stats(); }
  Traffic rail_traffic(size_t index) const {
    const transport::LinkStats& stats = rail_stats(index);
    return {stats.transmit_bytes.load(std::memory_order_relaxed),
            stats.receive_bytes.load(std::memory_order_relaxed)};
  }
  const RailHealth& rail_health(size_t index) const { return states_[index].health; }

  transport::Link& link(size_t index) { return *rails_[index].link; }

 private:
  struct Count {
    uint64_t bytes = 0;
    uint64_t frames = 0;
  };
  struct Chunk {
    uint64_t transfer = 0;
    size_t offset = 0;
    size_t size = 0;
  };
  struct Send {
    absl::Span<const std::byte> data;  // the transfer's bytes from `begin` on
    size_t begin = 0;                  // no earlier ones are needed any more
    size_t size = 0;
    collectives::Call call;
    size_t chunk = 0;
    size_t taken = 0;         // handed to the rails
    size_t acknowledged = 0;  // taken by the peer
    bool may_be_copied = true;
    bool copied = false;
    Count ahead_of_it;            // handed_, when it was handed out, or copied later
    std::vector<std::byte> copy;  // keeps its memory for the next user of this place

    bool complete() const { return acknowledged == size; }
    absl::Span<const std::byte> BytesOf(const Chunk& of) const {
      return data.subspan(of.offset - begin, of.size);
    }
  };
  struct Receive {
    collectives::ReceiveBuffer buffer;
    collectives::Call call;
    RangeSet arrived;
    bool done = false;
  };
  struct RailState {
    RailHealth health;
    SlotQueue<Chunk> underway;  // handed to the link, not acknowledged
    std::string lost;           // why it is not up
    absl::Time back = absl::InfinitePast();
    bool owes = false;        // frames were taken of which the peer has not been told,
    uint64_t owes_since = 0;  // since so many were on all rails
  };

  absl::Status PollRail(size_t index, absl::Time now);
  // Tells the peer of frames that were taken on a rail which nothing is sent over.
  absl::Status TellInTime(size_t index);
  absl::Status Pull();
  // The next chunk that a rail should take. Nothing when there is none, or none that may go yet.
  bool NextChunk(Chunk* chunk);
  bool MayRunAhead(size_t bytes);
  void Hand(size_t index, const Chunk& chunk);
  void TakeAcknowledgements(size_t index);
  void Retire();

  // Adds which rail of which peer to an error of that link.
  absl::Status OnAll(absl::FunctionRef<absl::Status(transport::Link& link)> does);
  absl::Status LinkError(size_t index, const absl::Status& status) const;
  // Moves what the rail carried to the others, or returns the error that ends the job.
  absl::Status Lose(size_t index, const absl::Status& status);
  void Progress();
  void TryToReturn(size_t index, absl::Time now);
  // Rails that this side has lost, as bits.
  uint16_t LostRails() const;
  // Gives up what the peer has said that it has lost.
  absl::Status LoseWithPeer(absl::Time now);

  bool Take(const transport::FrameHeader& header, absl::Span<const std::byte> payload);
  absl::Status Place(const transport::FrameHeader& header, absl::Span<const std::byte> payload);

  std::string name_;
  Logger log_;
  std::vector<Rail> rails_;
  std::vector<RailState> states_;
  Shares shares_;
  bool recovers_ = true;  // all links do
  size_t max_payload_;

  collectives::Call call_;
  bool copies_small_ = true;
  SlotQueue<Send> sends_;      // begins with the oldest that is not complete
  uint64_t next_ = 0;          // the oldest that has not been handed out whole
  uint64_t oldest_copy_ = 0;   // no copied one before it is unacknowledged
  uint64_t waiting_ = 0;       // bytes that no rail has
  Count handed_;               // in all, repeats apart
  std::deque<Chunk> repeats_;  // in the order of transfers

  SlotQueue<Receive> receives_;
  uint64_t taken_ = 0;  // frames, on all rails
  Stash stash_;
  bool may_repeat_ = false;  // chunks may come twice
  uint16_t peers_lost_ = 0;  // rails that the peer has lost, as bits, as of the last frames
  bool moved_ = false;       // since the last Poll
  bool held_back_ = false;   // as of the last Poll
  uint64_t progress_ = 0;
  absl::Status receive_error_;
  absl::Status send_error_;  // of a message that went at once
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_PEER_H_
