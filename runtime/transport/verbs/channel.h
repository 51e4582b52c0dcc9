// SPDX-License-Identifier: Apache-2.0
//
// A wire over verbs: what goes over its queue pairs, from their greeting to their first error.
//
// Lanes. A channel has one queue pair or several (lane.h), on one completion queue. Frames take
// turns among them (credits.h); what arrives early waits in its slot for the frames before it, so
// the sink gets them in their order. All that is no frame goes over the first. An error of any is
// the end of all.
//
// Greeting. Both sides have brought their queue pairs up before one speaks (channel_maker.cc), so
// what is sent finds the peer. No frame goes before this side's greeting is acknowledged and the
// peer's has arrived: then the path works in both directions. The other lanes carry nothing so far,
// and need no greeting of their own. Over iWARP the connection itself may take longer; one side
// greets when it is up, and the other when it has heard that.
//
// Completions. Only some work requests ask for one; queue pairs complete in order, so a completion
// stands for everything posted before it on its lane. Small frames that were posted without one and
// are not followed by any are flushed out with a probe (queue_pair.h). That the peer's NIC has
// something frees memory and counts as carried; only what the peer's process says that it has taken
// is done.
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
// acknowledge. After a second of waiting it posts a probe on every lane, which the peer's NIC
// answers on its own. If this side's NIC then says nothing at all, that is an error too: within
// seconds when its port is down, later in any case. Mostly its device has told of the port before
// (device_port.h).
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
#include "runtime/transport/verbs/lane.h"
#include "runtime/transport/verbs/queue_pair.h"
#include "runtime/transport/verbs/ring.h"
#include "runtime/transport/verbs/slot.h"
#include "runtime/transport/verbs/user_memory.h"
#include "runtime/transport/wire.h"

namespace railhead::transport::verbs {

// What a channel is made of. The rings and the user's memory outlive it.
struct ChannelParts {
  std::shared_ptr<const DevicePort> port;
  uint64_t downs = 0;  // of the port, before the connection began
  const Ring* send_ring = nullptr;
  const Ring* receive_ring = nullptr;
  UserMemory* memory = nullptr;
  std::shared_ptr<CompletionQueue> completions;  // of the pairs
  // At least one, each with Lane::Prepare called. Who still works at the connection of the first
  // when the channel goes, keeps it until then. The others are connected.
  std::vector<std::shared_ptr<QueuePair>> pairs;
};

// What each queue pair must hold for rings of `slots`: the frames, and with room to spare the
// messages that carry none.
QueueDepths DepthsFor(uint32_t slots);

// How many completions of so many pairs there may be at once.
uint32_t CompletionsFor(const DevicePort& port, QueueDepths depths, size_t pairs);

struct ChannelPeer {
  std::string where;  // how errors begin: rail, device, port, peer and its address
  VerbsAddress address;
  std::unique_ptr<Connection> connection;  // of the first queue pair
};

class Channel final : public Wire {
 public:
  // Counts into `stats`, which outlive it. The deadline is that of the greeting.
  static absl::StatusOr<std::unique_ptr<Channel>> Start(ChannelParts parts, ChannelPeer peer,
                                                        absl::Time deadline, LinkStats& stats);
  // From then on the NIC reads and writes nothing of it.
  ~Channel() override;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  size_t max_payload() const;
  absl::StatusOr<bool> TrySend(const FrameHeader& header,
                               absl::Span<const std::byte> payload) override;
  absl::StatusOr<bool> Poll(FrameSink sink) override;
  // Before all else, and once the peer listens: works at the greeting. Returns whether it is over.
  absl::StatusOr<bool> Greet();

  uint64_t unacknowledged() const override { return send_credits_.outstanding(); }
  // From then on the NIC needs no memory but the rings, until something is sent again; and what was
  // sent has arrived, or the other side was heard of so lately that it will have.
  bool Flushed() const override {
    return gathered_ == 0 && !awaited_ &&
           (acknowledged_ == send_credits_.sent() || parts_.port->Now() < trusted_until_);
  }
  Link::Load load() const override { return {bytes_in_flight_, carried_ - bytes_in_flight_}; }
  // How many bytes of payload may be on the wire; at least one frame, at most kMaxBytesInFlight.
  void SetHold(size_t bytes) override;
  int event_fd() const { return parts_.completions->event_fd(); }
  // The same of its connection, or -1.
  int connection_fd() const { return peer_.connection->event_fd(); }
  bool owes() const override { return receive_credits_.owed(); }
  absl::Status Acknowledge() override;
  void Answer() override { parts_.completions->Answer(); }
  absl::Status Arm(Wake wake) override;

 private:
  Channel(ChannelParts parts, ChannelPeer peer, absl::Time deadline, LinkStats& stats);

  absl::StatusOr<bool> WorkAtConnection();
  absl::Status WorkAtGreeting();
  bool greeted() const { return heard_peer_ && greeting_acknowledged_; }

  absl::Status LookAfterIdle();
  absl::StatusOr<bool> TakeCompletions();
  absl::Status OnReceived(size_t lane, const ibv_wc& completion);
  absl::Status OnFrame(size_t lane, uint32_t counter);
  void OnSent(const RequestId& id);
  absl::StatusOr<bool> Deliver(FrameSink sink);
  absl::Status ReportConsumed(bool due);

  absl::Status PostMessage(MessageKind kind, uint64_t counter);
  absl::Status PostProbe(Lane& lane);
  absl::Status LookAfterLanes(absl::Time now);

  absl::Status CompletionError(const RequestId& id, const ibv_wc& completion) const;
  absl::Status ProtocolError(absl::string_view what) const;

  ChannelParts parts_;
  ChannelPeer peer_;
  absl::Time deadline_;  // of the greeting
  LinkStats& stats_;

  std::vector<Lane> lanes_;
  size_t turn_ = 0;  // the lane of the next frame

  // Greeting, on the first lane.
  bool has_greeted_ = false;
  absl::Time remind_at_ = absl::InfiniteFuture();
  bool heard_peer_ = false;
  bool greeting_acknowledged_ = false;

  // Frames sent. Entry k of in_flight_ belongs to the frame in slot k of the send ring.
  struct InFlight {
    uint64_t request = 0;                              // its number on its lane
    uint64_t bytes = 0;                                // of payload
    std::shared_ptr<const UserMemory::Region> region;  // where it is the user's memory
  };
  SendCredits send_credits_;
  std::vector<InFlight> in_flight_;
  // The number of the oldest that is not acknowledged: on each lane, and of all.
  std::vector<uint64_t> oldest_;
  uint64_t acknowledged_ = kFirstFrame;
  uint64_t gathered_ = 0;  // frames in flight that are read from the user's memory
  uint64_t bytes_in_flight_ = 0;
  uint64_t most_in_flight_;
  uint64_t carried_ = 0;  // bytes of payload
  absl::Time trusted_until_ = absl::InfinitePast();
  bool no_room_ = false;  // for the last frame that was offered, until this side's NIC makes some

  // Frames received. Headers are copied out of the slots on arrival: a slot is memory that the peer
  // can write, and what was checked must be what is used.
  ReceiveCredits receive_credits_;
  std::vector<SlotHeader> arrived_headers_;
  bool awaited_ = false;  // the peer waits to be told what was consumed

  // While nothing moves: when to look after the link next.
  absl::Time next_look_ = absl::InfiniteFuture();
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CHANNEL_H_
