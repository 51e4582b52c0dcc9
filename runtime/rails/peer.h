// SPDX-License-Identifier: Apache-2.0
//
// All rails to one other rank. Used by Mesh.
//
// Sends wait in one queue, and the rails pull from it: the rail scheduler (shares.h) names the rail
// that takes the next chunk. So equal rails carry equal shares, also of many small messages, and a
// slow or busy rail delays nothing.
//
// A rail that is lost is dialed until it is back. Its chunks that the peer is not known to have
// consumed go over the other rails. Nothing is missed: a chunk is forgotten only when the link that
// carried it last says that the peer has consumed it. Nothing is done twice: a chunk keeps its
// transfer, offset and size for life, and the receiver drops what it has. The original may even
// come after the repeat, out of a connection that only this side takes for lost, so after a loss
// all chunks are treated so; before, a chunk that comes twice is an error.
//
// What may be sent when, and what becomes of each chunk, is decided by send_ledger.h and
// receive_ledger.h; what is here connects them with links. Two kinds of frames carry no data: news
// of posted receives, where no data goes to the peer that could bring it, and news of a rail that
// this side has lost. The peer then gives that rail up as well; else its next chunk there would
// have to be missed first.
#ifndef RAILHEAD_RUNTIME_RAILS_PEER_H_
#define RAILHEAD_RUNTIME_RAILS_PEER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/log.h"
#include "runtime/base/traffic.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/messenger.h"
#include "runtime/rails/receive_ledger.h"
#include "runtime/rails/send_ledger.h"
#include "runtime/rails/shares.h"
#include "runtime/transport/link.h"

namespace railhead::rails {

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
  // `name` is the other rank's ("rank 1 (pod b)"), which may become known later. There is at least
  // one rail. What happens to rails is told to `log`.
  using Name = std::function<std::string()>;
  Peer(Name name, std::vector<Rail> rails, Logger log = {});
  Peer(std::string name, std::vector<Rail> rails, Logger log = {})
      : Peer([name = std::move(name)] { return name; }, std::move(rails), std::move(log)) {}

  // What transfers that are posted from now on belong to; both sides must agree.
  void Expect(collectives::Call call) { call_ = call; }
  // Whether little is copied; see Mesh.
  void CopySmall(bool copies) { copies_small_ = copies; }
  uint64_t PostSend(absl::Span<const std::byte> data);
  uint64_t PostReceive(const collectives::ReceiveBuffer& buffer) {
    return receives_.Post(buffer, call_);
  }
  // A sent transfer is done when its memory is free again.
  bool SendDone(uint64_t ticket) const { return sends_.Done(ticket); }
  bool ReceiveDone(uint64_t ticket) const { return receives_.Done(ticket); }

  // Whether nothing is left to be done but to hear that what was sent has been consumed.
  bool OnlyUnacknowledged() const { return sends_.waiting() == 0 && receives_.empty(); }
  // Copies what the peer is not known to have consumed, if it is little and the rails do without
  // the original, so that the transfers are done. Returns whether any is that was not.
  bool KeepUnacknowledged();

  // Whether every posted transfer has arrived.
  bool Idle() const { return sends_.empty() && receives_.empty(); }
  // Whether every sent one is known to have.
  bool Acknowledged() const { return sends_.empty(); }
  // Whether nothing is to be done with this peer at all, but to look now and then what has become
  // of its rails. Not while its first connections are made.
  bool Quiet() const;
  // Whether Poll may have something to hand to a link.
  bool HasForLinks() const { return sends_.waiting() > 0 || receives_.MustTell() || !settled_; }
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
  uint64_t progress() const { return progress_ + sends_.progress() + receives_.progress(); }
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
  struct RailState {
    RailHealth health;
    std::string lost;  // why it is not up
    absl::Time back = absl::InfinitePast();
    bool tell_lost = false;  // the peer is still to be told that this side has lost it
    // A chunk that the link writes to its place as it arrives.
    std::optional<Chunk> placing;
  };

  bool Up(size_t index) const { return states_[index].health.up.load(std::memory_order_relaxed); }
  absl::Status PollRail(size_t index, absl::Time now);
  // Hands out what may go.
  absl::Status Pull();
  // News for the peer, in frames without data.
  absl::Status SendNotes();
  // Sends such a frame over some rail. Returns false if none has room.
  absl::StatusOr<bool> SendNote(transport::FrameKind kind, uint64_t about);
  transport::FrameHeader HeaderOf(const Chunk& chunk, const SendLedger::Content& content) const;
  bool Take(size_t index, const transport::FrameHeader& header,
            absl::Span<const std::byte> payload);
  std::byte* PlaceFor(size_t index, const transport::FrameHeader& header, size_t size);
  // Whether a rail is writing some of these bytes to their place.
  bool IsPlacing(size_t index, const transport::FrameHeader& header, size_t size) const;
  // Keeps all rails from it.
  void StopPlacing(const transport::FrameHeader& header, size_t size);

  // Adds which rail of which peer to an error of that link.
  absl::Status OnAll(absl::FunctionRef<absl::Status(transport::Link& link)> does);
  absl::Status LinkError(size_t index, const absl::Status& status) const;
  // Moves what the rail carried to the others, or returns the error that ends the job.
  absl::Status Lose(size_t index, const absl::Status& status);
  void TryToReturn(size_t index, absl::Time now);
  // Gives up what the peer has said that it has lost.
  absl::Status LoseWithPeer(absl::Time now);

  Name name_;
  Logger log_;
  std::vector<Rail> rails_;
  std::vector<RailState> states_;
  Shares shares_;
  size_t max_payload_ = SIZE_MAX;

  collectives::Call call_;
  bool copies_small_ = true;
  SendLedger sends_;
  ReceiveLedger receives_;
  std::vector<size_t> lost_by_peer_;  // rails, since the last look
  bool moved_ = false;                // since the last Poll
  bool held_back_ = false;            // as of the last Poll
  bool settled_ = false;              // every rail has been connected, and none is lost
  uint64_t progress_ = 0;             // apart from that of the ledgers
  absl::Status receive_error_;
  absl::Status send_error_;  // of a message that went at once
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_PEER_H_
