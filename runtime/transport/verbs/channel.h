// SPDX-License-Identifier: Apache-2.0
//
// Verbs connection: a wire over queue pairs, from their handshake to the first error.
//
// Lanes. A channel has one or more queue pairs (lane.h) on one completion queue. Frames use them in
// turn (credits.h); a frame that arrives early waits in its slot, so the sink gets all in order.
// Other messages use the first lane. An error of one lane ends the channel.
//
// Handshake. Both sides set up their queue pairs before either sends (channel_maker.cc). No frame
// is sent before this side's greeting is acknowledged and the peer's has arrived, so the path works
// in both directions. Other lanes carry nothing before and need no greeting. Over iWARP the
// connection may take longer: one side greets when it is up, the other after that greeting.
//
// Completions. Only some work requests are signaled; as queue pairs complete in order, a completion
// covers all earlier requests of its lane. Small unsignaled frames with no later one are completed
// by a probe (queue_pair.h). A completion frees memory and counts as carried; a frame is done only
// when the peer's process has reported it consumed.
//
// Zero copy. Large payloads in registered user memory (user_memory.h) are not copied: the NIC
// gathers the header from the slot and the payload from user memory, if the sender keeps that until
// the acknowledgement (`awaited`). The NIC reads it until the work request completes or the queue
// pair is destroyed; the frame holds the region until then. Once the peer is known to have the
// bytes (../../rails/peer.h), they may change: a message has arrived when all its packets have, and
// later retransmissions are discarded by InfiniBand and RoCE (old packet numbers) and by TCP. This
// holds for the first transmission of a chunk only. A repeat may be overwritten before it arrives,
// even while it is read; so it is copied, to be consistent with the checksum that iWARP adds: a
// wrong one would end the connection.
//
// Placed payloads. If the peer's memory is registered for it, a payload is written there first
// (FrameHeader::place), and its slot has the header only. Both writes use one queue pair, so the
// payload is in place when the header arrives (InfiniBand specification 9.5, ordering of RC; RFC
// 5041 section 5.3). Only frames of the first transmission are placed: a repeat could be written
// after the peer has completed the transfer and used its memory for something else.
//
// Keepalive. An idle link has nothing in flight that a dead peer could fail to acknowledge. After
// one idle second it posts a probe on every lane, which the peer's NIC answers without its process.
// If the local NIC then reports nothing, that is an error, too: within seconds if its port is down,
// later otherwise. Usually the device has reported the port before (device_port.h).
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

// Resources of a channel. Rings and user memory outlive it.
struct ChannelParts {
  std::shared_ptr<const DevicePort> port;
  uint64_t downs = 0;  // port-down events before the connection began
  const Ring* send_ring = nullptr;
  const Ring* receive_ring = nullptr;
  UserMemory* memory = nullptr;
  std::shared_ptr<CompletionQueue> completions;  // of the queue pairs
  // At least one, each after Lane::Prepare. A thread still working on the connection of the first
  // keeps it after the channel's end. The others are connected.
  std::vector<std::shared_ptr<QueuePair>> pairs;
};

// Returns queue depths for rings of `slots`: all frames, and other messages with a reserve.
QueueDepths DepthsFor(uint32_t slots);

// Returns the maximum number of outstanding completions of `pairs` queue pairs.
uint32_t CompletionsFor(const DevicePort& port, QueueDepths depths, size_t pairs);

struct ChannelPeer {
  std::string where;  // prefix of errors: rail, device, port, peer and its address
  VerbsAddress address;
  std::unique_ptr<Connection> connection;  // of the first queue pair
};

class Channel final : public Wire {
 public:
  // Counts into `stats`, which must outlive it. `deadline` is the handshake's.
  static absl::StatusOr<std::unique_ptr<Channel>> Start(ChannelParts parts, ChannelPeer peer,
                                                        absl::Time deadline, LinkStats& stats);
  // The NIC accesses no memory of it afterwards.
  ~Channel() override;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  size_t max_payload() const;
  absl::StatusOr<bool> TrySend(const FrameHeader& header,
                               absl::Span<const std::byte> payload) override;
  Link::Report Poll(FrameSink sink) override {
    return {Work(sink), send_credits_.outstanding(), receive_credits_.owed()};
  }
  // Advances the handshake; call before all else, when the peer listens. Returns true when it is
  // complete.
  absl::StatusOr<bool> Greet();

  // Returns true if the NIC needs only the rings until the next send, and everything sent has
  // arrived, or will, because the peer was alive recently.
  bool Flushed() const override {
    return gathered_ == 0 && !awaited_ &&
           (acknowledged_ == send_credits_.sent() || parts_.port->Now() < trusted_until_);
  }
  Link::Load load() const override { return {bytes_in_flight_, carried_ - bytes_in_flight_}; }
  // Limits the payload bytes in flight; at least one frame, at most kMaxBytesInFlight.
  void SetHold(size_t bytes) override;
  // Waits for completions, and for its connection setup; `waits` must outlive it.
  absl::Status WaitIn(LinkWaits& waits);
  absl::Status Acknowledge() override;
  void Answer() override { parts_.completions->Answer(); }
  absl::Status Arm(Wake wake) override;

 private:
  Channel(ChannelParts parts, ChannelPeer peer, absl::Time deadline, LinkStats& stats);

  absl::StatusOr<bool> WorkAtConnection();
  absl::Status WorkAtGreeting();
  bool greeted() const { return heard_peer_ && greeting_acknowledged_; }

  absl::StatusOr<bool> Work(FrameSink sink);
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
  absl::Time deadline_;  // of the handshake
  LinkStats& stats_;
  LinkWaits* waits_ = nullptr;
  int connection_fd_ = -1;  // in `waits_`
  UserMemory::Reader memory_;

  std::vector<Lane> lanes_;
  size_t turn_ = 0;  // lane of the next frame

  // Handshake, on the first lane.
  bool has_greeted_ = false;
  absl::Time remind_at_ = absl::InfiniteFuture();
  bool heard_peer_ = false;
  bool greeting_acknowledged_ = false;

  // Frames sent. Entry k of in_flight_ is the frame in slot k of the send ring.
  struct InFlight {
    uint64_t request = 0;                              // its number on its lane
    uint64_t bytes = 0;                                // of payload
    std::shared_ptr<const UserMemory::Region> region;  // if it is user memory
  };
  SendCredits send_credits_;
  std::vector<InFlight> in_flight_;
  // Number of the oldest unacknowledged frame: on each lane, and overall.
  std::vector<uint64_t> oldest_;
  uint64_t acknowledged_ = kFirstFrame;
  uint64_t gathered_ = 0;  // frames in flight that are read from user memory
  uint64_t bytes_in_flight_ = 0;
  uint64_t most_in_flight_;
  uint64_t carried_ = 0;  // bytes of payload
  absl::Time trusted_until_ = absl::InfinitePast();
  bool no_room_ = false;  // for the last offered frame, until the local NIC frees some

  // Frames received. Headers are copied from the slots on arrival, because the peer can write to
  // slots: the checked header must be the one used.
  ReceiveCredits receive_credits_;
  std::vector<SlotHeader> arrived_headers_;
  bool awaited_ = false;  // the peer waits for an acknowledgement

  // While idle: time of the next check of the link.
  absl::Time next_look_ = absl::InfiniteFuture();
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CHANNEL_H_
