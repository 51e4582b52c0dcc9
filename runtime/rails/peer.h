// SPDX-License-Identifier: Apache-2.0
//
// All rails to one other rank. Used by Mesh.
//
// Sends wait in one queue; the rail scheduler (rail_scheduler.h) selects the rail of the next
// chunk. So equal rails carry equal shares, also of many small messages, and a slow or busy rail
// delays nothing.
//
// A rail that has never been connected is lost like any other once its connections have failed for
// 10 s, or another rail has been up for as long. Until then, the peer may not have called yet: it
// accepts the connection, and does not answer.
//
// A lost rail reconnects; its unconsumed chunks are sent again over other rails. Nothing is lost: a
// chunk is released only when the link that last carried it reports it consumed. Nothing is applied
// twice: a chunk keeps its transfer, offset and size, and the receiver drops duplicates. The
// original may even arrive after the repeat, from a connection that only this side considers lost;
// so after a loss all chunks may be duplicates. Before, a duplicate is an error.
//
// A lost rail that has a connection again is on probation: small packets may pass where large ones
// do not (an MTU that does not fit, half a black hole), and each loss delays what the rail had. So
// both ranks send a probe, and the rail returns once each probe has arrived. If it is lost within a
// minute of its return, or on probation, its next connection waits: 0.1 s, each time twice as long
// as before, at most a minute; not if there is no other rail.
//
// Bytes that the peer's NIC writes straight into a receive's memory (transport/verbs/channel.h)
// must not arrive after that is done: its owner may use it for something else. A write is under way
// only where a rail was lost, and the repeat of its chunk names that rail. So before a repeat
// counts, this side gives up its connection on that rail, too, whose queue pairs take nothing
// afterwards.
//
// send_ledger.h and receive_ledger.h decide when a chunk may be sent and when it is done; this
// class connects them with links. Four kinds of frames carry no data: probes; posted receives, if
// no data frame can carry them; a rail that this side has lost; and the address of a rail that had
// none before, or another one. The peer drops a rail that this side has lost, too; otherwise it
// would notice only by its next chunk there.
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
#include "runtime/rails/rail_scheduler.h"
#include "runtime/rails/receive_ledger.h"
#include "runtime/rails/send_ledger.h"
#include "runtime/transport/link.h"

namespace railhead::rails {

// Names of a rail.
struct RailName {
  int rail = 0;
  std::string device;     // HCA, or network interface with TCP
  int port = 0;           // of the HCA; 0 with TCP
  std::string transport;  // "verbs" or "tcp"
};

// Returns "rail 0 (rxe0 port 1, verbs)".
std::string ToString(const RailName& name);

struct Rail {
  RailName name;
  std::unique_ptr<transport::Link> link;
};

// State of a rail. Written by the peer's thread only.
struct RailHealth {
  std::atomic<bool> up{true};
  std::atomic<bool> lost{false};       // it is not up, and others are or it was
  std::atomic<uint64_t> failovers{0};  // number of losses
  std::atomic<uint64_t> returns{0};    // number of returns
  std::atomic<double> rate{0};         // measured bytes per second
};

// Use from one thread at a time, except where stated.
class Peer {
 public:
  // `name` returns the other rank's name ("rank 1 (pod b)"), which may become known later. Needs at
  // least one rail. If some have a connection, the others are lost from the start. Changes of rails
  // are logged to `log`.
  using Name = std::function<std::string()>;
  Peer(Name name, std::vector<Rail> rails, Logger log = {});
  Peer(std::string name, std::vector<Rail> rails, Logger log = {})
      : Peer([name = std::move(name)] { return name; }, std::move(rails), std::move(log)) {}

  // Sets the call of transfers posted from now on; must match on both sides.
  void Expect(collectives::Call call) { call_ = call; }
  // From now on this rail carries all transfers of this side while it is up, and the others only
  // when it is not.
  void Prefer(size_t index) {
    for (size_t i = 0; i < rails_.size(); ++i) scheduler_.SetStandby(i, i != index);
  }
  // See Mesh::CopySmall.
  void CopySmall(bool copies) { copies_small_ = copies; }
  // `more`: another one follows at once.
  uint64_t PostSend(absl::Span<const std::byte> data, bool more = false);
  // See Messenger::PostDirect.
  uint64_t PostDirect(absl::Span<const std::byte> data, const collectives::RemoteMemory& to);
  uint64_t PostReceive(const collectives::ReceiveBuffer& buffer) {
    return receives_.Post(buffer, call_);
  }
  // A send is done when its memory may be reused.
  bool SendDone(uint64_t ticket) const { return sends_.Done(ticket); }
  bool ReceiveDone(uint64_t ticket) const { return receives_.Done(ticket); }

  // Returns true if only acknowledgements of sends are outstanding.
  bool OnlyUnacknowledged() const { return sends_.waiting() == 0 && receives_.empty(); }
  // Copies unconsumed data, if it is little and no rail reads the original, which completes the
  // transfers. Returns true if it completed any.
  bool KeepUnacknowledged();

  // The peer may leave from now on: rails that it closes are neither logged nor counted as lost.
  void ExpectClose() { may_close_ = true; }

  // Returns true if every posted transfer has completed.
  bool Idle() const { return sends_.empty() && receives_.empty(); }
  // Returns true if every send is known to have arrived.
  bool Acknowledged() const { return sends_.empty(); }
  // Returns true if the peer needs only occasional checks of its rails. False during the first
  // connection.
  bool Quiet() const;
  // Returns true if Poll may have frames for a link.
  bool HasForLinks() const { return sends_.waiting() > 0 || receives_.MustTell() || !settled_; }
  // Returns true if nothing depends on further polling, unless a rail is lost.
  bool Flushed() const;
  // Returns true if no rail waits for a connection.
  bool AllUp() const;
  // Returns true if connections of a rail that was never connected fail, though the peer's process
  // may be there: DescribeProgress has the cause.
  bool CannotConnect() const;
  // Returns true if passing time may give Poll work.
  bool Restless() const;
  // Returns true if that may be soon: data waits although a rail has room.
  bool HeldBack() const { return held_back_; }

  // Advances everything; small messages may have been sent already. Returns true if anything moved.
  // An error is final and names rail and peer.
  absl::StatusOr<bool> Poll(absl::Time now) {
    return PollRails(now, [](size_t) { return true; });
  }
  // Notes that the descriptor of a rail is readable.
  void Stir(size_t index) { states_[index].stirred = true; }
  // As Poll without system calls that find nothing: polls rails whose descriptors were readable
  // since the last time, and those that are polled in memory.
  absl::StatusOr<bool> PollStirred(absl::Time now);
  // Increases as transfers come nearer to completion; losses, returns and repeats of rails do not
  // count.
  uint64_t progress() const { return progress_ + sends_.progress() + receives_.progress(); }
  // Sends outstanding acknowledgements.
  absl::Status Acknowledge() {
    return OnAll([](transport::Link& link) { return link.Acknowledge(); });
  }
  // Call before waiting for the links' descriptors.
  absl::Status Arm(transport::Wake wake) {
    return OnAll([wake](transport::Link& link) { return link.Arm(wake); });
  }

  // Thread-safe. Returns when the other rank's process last gave a sign: a frame, an
  // acknowledgement of one, or the first connection of a rail. InfinitePast if it gave none.
  absl::Time last_sign() const;
  // Thread-safe. Makes the next poll request such a sign of the other rank.
  void AskForSign() { sign_asked_.store(true, std::memory_order_relaxed); }
  bool sign_asked() const { return sign_asked_.load(std::memory_order_relaxed); }

  // Describes the oldest transfers, for the message of a stalled collective.
  std::string DescribeProgress() const;

  // Thread-safe: names, counters and states of the rails, for the life of the peer.
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
    std::string lost;                         // why it is not up, "" before it is known
    absl::Time back = absl::InfinitePast();   // when it was up again
    absl::Time retry = absl::InfinitePast();  // no connection before
    bool was_up = false;
    absl::Time failing = absl::InfiniteFuture();   // since when its first connection cannot be made
    absl::Duration pause = absl::ZeroDuration();   // the last one before a connection
    absl::Time tell_moved = absl::InfinitePast();  // when to send the peer its address (again)
    // State of the present connection.
    bool probation = false;
    bool probe_sent = false;
    bool probe_came = false;
    bool tell_lost = false;  // the peer must still be notified of the loss
    bool stirred = false;    // its descriptor is readable
    // Chunk that the link is writing to its place.
    std::optional<Chunk> placing;
  };

  bool Up(size_t index) const { return states_[index].health.up.load(std::memory_order_relaxed); }
  absl::StatusOr<bool> PollRails(absl::Time now, absl::FunctionRef<bool(size_t index)> which);
  absl::Status PollRail(size_t index, absl::Time now);
  void NoteSign() { last_sign_.store(absl::ToUnixNanos(now_), std::memory_order_relaxed); }
  // If a sign was requested, sends a note that the peer acknowledges soon.
  absl::Status SeekSign();
  // Gives chunks to rails.
  absl::Status Pull();
  // Sends frames without data.
  absl::Status SendNotes();
  // Sends such a frame over any rail. Returns false if none has room.
  absl::StatusOr<bool> SendNote(transport::FrameKind kind, uint64_t about, bool awaited = false,
                                absl::string_view payload = "");
  transport::FrameHeader HeaderOf(const Chunk& chunk, const SendLedger::Content& content,
                                  size_t rail, bool repeat) const;
  bool Take(size_t index, const transport::FrameHeader& header,
            absl::Span<const std::byte> payload);
  std::byte* PlaceFor(size_t index, const transport::FrameHeader& header, size_t size);
  // Returns true if a rail is writing some of these bytes to their place.
  bool IsPlacing(size_t index, const transport::FrameHeader& header, size_t size) const;
  // Stops all rails from writing them.
  void StopPlacing(const transport::FrameHeader& header, size_t size);

  // Add rail and peer to an error of a link.
  absl::Status OnAll(absl::FunctionRef<absl::Status(transport::Link& link)> does);
  absl::Status LinkError(size_t index, const absl::Status& status) const;
  // Reassigns the chunks of the rail, or returns the error that ends the job.
  absl::Status Lose(size_t index, const absl::Status& status);
  void TryToReturn(size_t index, absl::Time now);
  // Advances a rail's probation. An error ends the job.
  absl::Status Prove(size_t index, absl::Time now);
  absl::Status SendProbe(size_t index);
  void Return(size_t index, absl::Time now);
  bool AnyUp() const;
  // Returns true if the rail has a connection.
  bool Connected(size_t index) const { return Up(index) || states_[index].probation; }
  // Gives up rails that the peer reported lost.
  absl::Status LoseWithPeer(absl::Time now);
  // Gives up rails that may write what has come by others.
  absl::Status Fence();
  absl::Status GiveUp(size_t index, absl::string_view why);

  Name name_;
  Logger log_;
  std::vector<Rail> rails_;
  std::vector<RailState> states_;
  RailScheduler scheduler_;
  size_t max_payload_ = SIZE_MAX;

  collectives::Call call_;
  bool copies_small_ = true;
  SendLedger sends_;
  ReceiveLedger receives_;
  std::vector<size_t> lost_by_peer_;  // rails, since the last check
  std::vector<size_t> to_fence_;      // rails that may still write what was repeated
  bool moved_ = false;                // since the last Poll
  bool follows_ = false;              // the next message follows one that has waited for it
  bool to_push_ = false;              // frames may wait for the next one
  bool held_back_ = false;            // at the last Poll
  bool settled_ = false;              // every rail has been connected, and all are up
  bool may_close_ = false;            // see ExpectClose
  bool any_lost_ = false;             // rail
  absl::Time first_up_ = absl::InfiniteFuture();  // when the first rail was seen to be connected
  absl::Time now_ = absl::InfinitePast();         // of the last Poll
  uint64_t progress_ = 0;                         // besides that of the ledgers
  static constexpr int64_t kNoSign = INT64_MIN;
  std::atomic<int64_t> last_sign_{kNoSign};  // nanoseconds
  std::atomic<bool> sign_asked_{false};
  absl::Status receive_error_;
  absl::Status send_error_;  // of a message that was sent at once
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_PEER_H_
