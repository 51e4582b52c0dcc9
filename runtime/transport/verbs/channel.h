// SPDX-License-Identifier: Apache-2.0
//
// One life of a link: what goes over one queue pair, from its greeting to its first error.
//
// Greeting. Over InfiniBand and RoCE the queue pair comes up without waiting for the peer, so a
// side's first message may find nobody: the peer's NIC drops it. Each side therefore sends a
// greeting first and no frame before (a) the greeting is acknowledged and (b) the peer's own has
// arrived. Whoever is
// up later is answered at once; its greeting makes the earlier side post a second one, whose packet
// number shows the peer's NIC that one is missing, which brings the first one back without waiting
// for a timeout. If the NIC gives up on the greeting (the peer is seconds late), the queue pair is
// reset and the greeting starts again, until the deadline. Nothing is lost by that: only greetings
// were sent, and how many of the peer's arrived is known, so the packet numbers of both sides still
// agree. Over iWARP the connection itself may fail and is begun again in the same way; one side
// greets when it is up, and the other when it has heard that.
//
// Completions. Only some work requests ask for one; queue pairs complete in order, so a completion
// stands for everything posted before it. Small frames that were posted without one and are not
// followed by any are flushed out with a probe (queue_pair.h). That the peer's NIC has something
// frees memory and counts as carried; only what the peer's process says that it has taken is done.
//
// Large payloads of memory that the user has made known (user_memory.h) are not copied: the NIC
// gathers the header from the slot and the payload from where it lies, if the sender keeps it for
// the acknowledgement anyway (`awaited`). It reads that memory until the work request has
// completed, or the queue pair is gone; until then the frame holds the region. Its bytes may change
// before, once the peer is known to have them (../../rails/peer.h): a message has arrived when all
// its packets have, and what is sent once more after that, because an acknowledgement was lost, no
// receiver looks into. InfiniBand and RoCE discard packets whose number they have passed, and TCP
// discards bytes that it has. That holds for the first time that a chunk is sent. A repeat may be
// overwritten before it has arrived, even while it is read. It is copied, so that it is the same
// from its first byte to the checksum that iWARP adds: a wrong one would end the connection.
//
// Signs of life. A link that waits has nothing under way that a dead peer could fail to
// acknowledge. After a second of waiting it posts a probe, which the peer's NIC answers on its own.
// If this side's NIC then says nothing at all, that is an error too: within seconds when
// its port is down, later in any case.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CHANNEL_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CHANNEL_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/transport/link.h"
#include "runtime/transport/verbs/address.h"
#include "runtime/transport/verbs/completion_queue.h"
#include "runtime/transport/verbs/connection.h"
#include "runtime/transport/verbs/credits.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/queue_pair.h"
#include "runtime/transport/verbs/ring.h"
#include "runtime/transport/verbs/slot.h"
#include "runtime/transport/verbs/user_memory.h"

namespace railhead::transport::verbs {

// What a channel is made of. The rings and the user's memory outlive it.
struct ChannelParts {
  std::shared_ptr<const DevicePort> port;
  const Ring* send_ring = nullptr;
  const Ring* receive_ring = nullptr;
  UserMemory* memory = nullptr;
  std::shared_ptr<CompletionQueue> completions;  // of the pair
  // Initialized; PostAllReceives has been called. Who still works at its connection when the
  // channel goes, keeps it until then.
  std::shared_ptr<QueuePair> pair;
};

// What a queue pair must hold for rings of `slots`: the frames, and with room to spare the messages
// that carry none.
QueueDepths DepthsFor(uint32_t slots);

// How many completions there may be at once.
uint32_t CompletionsFor(const DevicePort& port, QueueDepths depths);

// Fills the receive queue of a queue pair that has just been initialized for the `generation`th
// time (0 at first).
absl::Status PostAllReceives(QueuePair& pair, uint32_t generation);

struct ChannelPeer {
  std::string where;  // how errors begin: rail, device, port, peer and its address
  VerbsAddress address;
  std::unique_ptr<Connection> connection;
};

// Used by one thread at a time; its functions are those of Link.
class Channel {
 public:
  // Counts into `stats`, which outlive it.
  static absl::StatusOr<std::unique_ptr<Channel>> Start(ChannelParts parts, ChannelPeer peer,
                                                        absl::Time deadline, LinkStats& stats);
  // From then on the NIC reads and writes nothing of it.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  size_t max_payload() const;
  absl::StatusOr<bool> TrySend(const FrameHeader& header, absl::Span<const std::byte> payload);
  absl::StatusOr<bool> Poll(FrameSink sink);
  // Works at the greeting alone. Returns whether it is over: frames may go.
  absl::StatusOr<bool> Greet();

  // Frames that the peer's sink is not known to have taken.
  uint64_t unacknowledged() const { return send_credits_.outstanding(); }
  // From then on the NIC needs no memory but the rings, until something is sent again.
  bool Flushed() const { return acknowledged_ == send_credits_.sent() && !awaited_; }
  Link::Load load() const { return {bytes_in_flight_, carried_ - bytes_in_flight_}; }
  // How many bytes of payload may be on the wire; at least one frame, at most kMaxBytesInFlight.
  void SetHold(size_t bytes);
  int event_fd() const { return parts_.completions->event_fd(); }
  // The same of its connection, or -1.
  int connection_fd() const { return peer_.connection->event_fd(); }
  absl::Status Acknowledge();
  absl::Status Arm();

 private:
  Channel(ChannelParts parts, ChannelPeer peer, absl::Time deadline, LinkStats& stats);

  absl::Status BringUp();
  absl::Status WorkAtConnection();
  absl::Status FinishGreeting();
  absl::Status RestartGreeting();
  bool greeted() const { return heard_peer_ && greeting_acknowledged_; }

  absl::StatusOr<bool> Advance(FrameSink sink);
  absl::StatusOr<bool> TakeCompletions();
  absl::Status OnReceived(const ibv_wc& completion);
  absl::Status OnFrame(uint32_t counter);
  void OnSent(uint64_t request);
  absl::StatusOr<bool> Deliver(FrameSink sink);
  absl::Status ReportConsumed(bool due);

  bool HasSendRoom() const { return posted_ - completed_ < parts_.pair->depths().send; }
  bool SignalOutstanding() const { return last_signaled_ > completed_; }
  uint64_t NextRequest(bool signaled);
  absl::Status Post(Message message, bool signaled);
  absl::Status PostMessage(MessageKind kind, uint64_t counter);
  absl::Status PostProbe();
  absl::Status LookAfterIdleLink();

  absl::Status CompletionError(const ibv_wc& completion) const;
  absl::Status ProtocolError(absl::string_view what) const;
  // An error that leaves this channel is its last: later calls return it again.
  absl::Status Final(absl::Status status);

  ChannelParts parts_;
  ChannelPeer peer_;
  absl::Time deadline_;  // of the greeting
  absl::Status error_;   // once set, final
  LinkStats& stats_;

  // Greeting. A generation is one life of the queue pair between resets; completions carry it.
  uint32_t generation_ = 0;
  bool connected_ = false;
  absl::Time remind_at_ = absl::InfiniteFuture();
  bool heard_peer_ = false;
  bool greeting_acknowledged_ = false;
  uint32_t greetings_heard_ = 0;
  bool greeting_failed_ = false;

  // Work requests of this generation, counted from 1.
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  uint64_t last_signaled_ = 0;

  // Frames sent. Entry k of in_flight_ belongs to the frame in slot k of the send ring.
  struct InFlight {
    uint64_t request = 0;
    uint64_t bytes = 0;                                // of payload
    std::shared_ptr<const UserMemory::Region> region;  // where it is the user's memory
  };
  SendCredits send_credits_;
  std::vector<InFlight> in_flight_;
  uint64_t acknowledged_ = kFirstFrame;  // the number of the oldest that is not
  uint64_t bytes_in_flight_ = 0;
  uint64_t most_in_flight_;
  uint64_t carried_ = 0;  // bytes of payload
  uint32_t unsignaled_frames_ = 0;

  // Frames received. Headers are copied out of the slots on arrival: a slot is memory that the peer
  // can write, and what was checked must be what is used.
  ReceiveCredits receive_credits_;
  std::vector<SlotHeader> arrived_headers_;
  uint32_t receives_to_post_ = 0;
  bool awaited_ = false;  // the peer waits to be told what was consumed

  // While nothing moves: when to look after the link next, and since when the NIC is silent.
  absl::Time next_look_ = absl::InfiniteFuture();
  absl::Time silent_since_ = absl::InfinitePast();
  uint64_t completed_at_look_ = 0;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CHANNEL_H_
