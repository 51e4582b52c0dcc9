// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/channel.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::transport::verbs {
namespace {

// Payload on the wire and not acknowledged, per link: four full frames. More would only wait in
// switches, and be lost there where queues are short: this is what a 400 Gbit/s link sends in 5 us,
// more than a round trip, and what a rail of 4 MB/s sends in 65 ms, well below the retransmission
// timeout.
constexpr uint64_t kMaxBytesInFlight = uint64_t{256} * 1024;

// Payloads from this size on may be sent from where they lie; a copy of fewer bytes costs less than
// having the NIC fetch them.
constexpr size_t kLeastGathered = kAlwaysSignalBytes;

// Of a slot's header: the payload was written to FrameHeader::place, and is not in the slot.
constexpr uint32_t kPlacedFlag = kTransportsFlag;

// Reports and greetings that may be under way beside a ring full of frames.
constexpr uint32_t kSpareRequests = 8;

// Interval of checks of a link on which nothing moves.
constexpr absl::Duration kLookInterval = absl::Seconds(1);
// A NIC reports a peer that does not answer by itself, after 1 s on most and 4 s on some. Some miss
// it when their port goes down (rdma_rxe does, now and then), and those of iWARP take much longer
// (for all NICs, QueuePair limits the time).
constexpr absl::Duration kPortDownPatience = absl::Seconds(5);

// If the peer's NIC answered within this time, it has what was sent since, or will get it without
// this side: frequent senders need not wait for acknowledgements, and a dead rail does not pass for
// a working one.
constexpr absl::Duration kTrusted = absl::Milliseconds(100);

constexpr char kActive[] = "ACTIVE";
constexpr char kCheckPort[] = ": check its cable, switch port and network interface";

const char* WhatToCheck(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "the peer's NIC does not answer: check that the peer's process is alive, and that the "
             "two nodes reach each other on this rail (link, addresses, routes, MTU; on RoCE also "
             "PFC and ECN if packets are lost)";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "the peer does not process received messages: check whether its process hangs";
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      return "the peer's NIC refused the write: the peer has closed this link, or runs another "
             "version of Railhead";
    case IBV_WC_WR_FLUSH_ERR:
      return "the queue pair was stopped: the peer violated the protocol, or the device was reset; "
             "see the kernel's log on this node";
    case IBV_WC_LOC_QP_OP_ERR:
      return "the NIC has given up this connection (RoCE: check the node's routes and addresses on "
             "this rail; iWARP: its TCP connection broke); see the kernel's log on both nodes";
    default:
      return "the NIC could not carry out the request; see the kernel's log on this node";
  }
}

}  // namespace

QueueDepths DepthsFor(uint32_t slots) {
  // Sends: a ring of frames, and reports and greetings (they wait when there is no room). Receives:
  // the peer's frames (one ring), its reports (each returns at least one frame, so at most another
  // ring), and greetings. The peer never finds the receive queue empty. With several pairs each
  // needs less, but their number is known only from the peer's offer.
  return {.send = slots + kSpareRequests, .receive = 2 * slots + kSpareRequests};
}

uint32_t CompletionsFor(const DevicePort& port, QueueDepths depths, size_t pairs) {
  return static_cast<uint32_t>(pairs) * QueuePair::CompletionsOf(port, depths);
}

absl::StatusOr<std::unique_ptr<Channel>> Channel::Start(ChannelParts parts, ChannelPeer peer,
                                                        absl::Time deadline, LinkStats& stats) {
  std::unique_ptr<Channel> channel(new Channel(std::move(parts), std::move(peer), deadline, stats));
  const ChannelPeer& to = channel->peer_;
  if (absl::Status begun = to.connection->Begin(channel->lanes_.front().pair()); !begun.ok()) {
    return absl::Status(begun.code(), absl::StrCat(to.where, ": ", begun.message()));
  }
  return channel;
}

Channel::Channel(ChannelParts parts, ChannelPeer peer, absl::Time deadline, LinkStats& stats)
    : parts_(std::move(parts)),
      peer_(std::move(peer)),
      deadline_(deadline),
      stats_(stats),
      memory_(*parts_.memory),
      send_credits_(peer_.address.slots, parts_.pairs.size()),
      in_flight_(parts_.send_ring->slots()),
      most_in_flight_(kMaxBytesInFlight),
      receive_credits_(parts_.receive_ring->slots(), parts_.pairs.size()),
      arrived_headers_(parts_.receive_ring->slots()) {
  for (std::shared_ptr<QueuePair>& pair : std::exchange(parts_.pairs, {})) {
    oldest_.push_back(kFirstFrame + lanes_.size());
    lanes_.emplace_back(std::move(pair), lanes_.size());
  }
}

// Destroy queue pairs before the memory of frames in flight. The connecting thread has one, too.
Channel::~Channel() {
  if (waits_ != nullptr) {
    waits_->Watch(parts_.completions->event_fd(), 0).IgnoreError();
    waits_->Watch(connection_fd_, 0).IgnoreError();
  }
  peer_.connection.reset();
  lanes_.clear();
}

absl::Status Channel::WaitIn(LinkWaits& waits) {
  waits_ = &waits;
  absl::Status watched = waits.Watch(parts_.completions->event_fd(), EPOLLIN);
  connection_fd_ = peer_.connection->event_fd();
  if (connection_fd_ >= 0) watched.Update(waits.Watch(connection_fd_, EPOLLIN));
  return watched;
}

size_t Channel::max_payload() const {
  return std::min(parts_.send_ring->slot_payload(), peer_.address.slot_payload);
}

void Channel::SetHold(size_t bytes) {
  most_in_flight_ = std::clamp<uint64_t>(bytes, max_payload(), kMaxBytesInFlight);
}

absl::Status Channel::Acknowledge() { return ReportConsumed(receive_credits_.owed()); }

absl::Status Channel::Arm(Wake wake) {
  // An unread event of the connection would end every sleep at once.
  if (absl::Status up = WorkAtConnection().status(); !up.ok()) return up;
  const bool all = wake == Wake::kAll || no_room_ || !lanes_.front().HasRoom() || !greeted();
  return parts_.completions->Arm(/*solicited_only=*/!all);
}

absl::StatusOr<bool> Channel::TrySend(const FrameHeader& header,
                                      absl::Span<const std::byte> payload) {
  if (payload.size() > max_payload()) {
    return absl::InvalidArgumentError(
        absl::StrCat(peer_.where, ": a frame of ", payload.size(),
                     " bytes is larger than max_payload() = ", max_payload()));
  }
  Lane& lane = lanes_[turn_];
  const uint64_t unacknowledged = send_credits_.sent() - acknowledged_;
  const auto bytes = static_cast<uint32_t>(sizeof(SlotHeader) + payload.size());
  no_room_ = unacknowledged >= parts_.send_ring->slots() || !lane.HasRoom() ||
             (bytes_in_flight_ > 0 && bytes_in_flight_ + payload.size() > most_in_flight_);
  if (!send_credits_.available() || no_room_) return false;

  // A repeat could be written after the transfer is done.
  const bool places = header.place.has_value() && !header.repeated && !payload.empty();
  const uint64_t number = send_credits_.Take();
  std::byte* const start = parts_.send_ring->Slot(number) + kHeaderOffset;
  const SlotHeader slot_header = {
      .transfer = header.transfer,
      .offset = header.offset,
      .call = header.call,
      .size = header.size,
      .payload = static_cast<uint32_t>(payload.size()),
      .sequence = static_cast<uint32_t>(number) & kCounterMask,
      .consumed = static_cast<uint32_t>(receive_credits_.TakeReport()) & kCounterMask,
      .posted = header.posted,
      .flags = FlagsOf(header) | (places ? kPlacedFlag : 0),
  };
  awaited_ = false;
  std::memcpy(start, &slot_header, sizeof(slot_header));
  std::shared_ptr<const UserMemory::Region> region;
  const bool may_gather = header.awaited && !header.repeated && payload.size() >= kLeastGathered;
  if (may_gather || places || memory_.IsOnDevice(payload)) region = memory_.Find(payload);

  Message message;
  message.value = PackImmediate(MessageKind::kFrame, number);
  message.first.local_key = parts_.send_ring->local_key();
  LocalBytes content = {payload, region != nullptr ? region->local_key() : 0};
  if (region == nullptr && !payload.empty()) {
    std::byte* const copy = start + sizeof(slot_header);
    if (absl::Status copied = memory_.CopyOut(payload, copy); !copied.ok()) return copied;
    content = {absl::MakeConstSpan(copy, payload.size()), parts_.send_ring->local_key()};
  }
  message.first.bytes = absl::MakeConstSpan(start, sizeof(slot_header));
  if (places) {
    message.placed = content;
    message.placed_address = header.place->address;
    message.placed_key = header.place->key;
  } else if (region != nullptr) {
    message.second = content;
  } else {
    message.first.bytes = absl::MakeConstSpan(start, bytes);
  }
  message.remote_address =
      peer_.address.ring_address +
      (number & (peer_.address.slots - 1)) * SlotStride(peer_.address.slot_payload) + kHeaderOffset;

  message.remote_key = peer_.address.ring_key;
  if (absl::Status status = lane.SendFrame(message, bytes); !status.ok()) return status;
  turn_ = turn_ + 1 < lanes_.size() ? turn_ + 1 : 0;
  if (region != nullptr) ++gathered_;
  in_flight_[number % in_flight_.size()] = {lane.posted(), payload.size(), std::move(region)};
  bytes_in_flight_ += payload.size();
  carried_ += payload.size();
  stats_.transmit_bytes.fetch_add(payload.size(), std::memory_order_relaxed);
  return true;
}

absl::StatusOr<bool> Channel::Greet() {
  absl::Status status = TakeCompletions().status();
  if (status.ok() && !greeted()) status = WorkAtGreeting();
  if (!status.ok()) return status;
  if (greeted()) peer_.connection->Settle();
  return greeted();
}

absl::StatusOr<bool> Channel::WorkAtConnection() {
  absl::StatusOr<bool> up = peer_.connection->Advance();
  if (up.ok()) return up;
  return absl::Status(up.status().code(), absl::StrCat(peer_.where, ": ", up.status().message()));
}

absl::Status Channel::WorkAtGreeting() {
  const absl::StatusOr<bool> up = WorkAtConnection();
  if (!up.ok()) return up.status();
  const absl::Time now = parts_.port->Now();
  if (*up && !has_greeted_ && (peer_.connection->speaks_first() || heard_peer_)) {
    has_greeted_ = true;
    remind_at_ = now + peer_.connection->reminder();
    return PostMessage(MessageKind::kGreeting, 0);
  }
  if (now >= remind_at_ && lanes_.front().HasRoom()) {
    remind_at_ = now + peer_.connection->reminder();
    return PostProbe(lanes_.front());
  }
  if (now < deadline_) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      peer_.where,
      ": the peer did not answer on this rail in time; check that its process runs, "
      "and that the two nodes reach each other on this rail (link, addresses, routes, MTU). "
      "This side's port is ",
      parts_.port->StateNow()));
}

absl::StatusOr<bool> Channel::Work(FrameSink sink) {
  absl::StatusOr<bool> completed = TakeCompletions();
  if (!completed.ok()) return completed;
  absl::StatusOr<bool> delivered = Deliver(sink);
  if (!delivered.ok()) return delivered;
  for (Lane& lane : lanes_) {
    if (!lane.Unsignaled()) continue;
    if (absl::Status status = PostProbe(lane); !status.ok()) return status;
  }
  if (*completed || *delivered) {
    next_look_ = absl::InfiniteFuture();
    return true;
  }
  if (absl::Status idle = LookAfterIdle(); !idle.ok()) return idle;
  return false;
}

absl::StatusOr<bool> Channel::TakeCompletions() {
  // Only what advances the caller's work counts as movement: an answer of the peer's NIC does not,
  // or a caller that waits for a hung peer would never time out.
  bool moved = false;
  bool any = false;
  const bool had_room = lanes_[turn_].HasRoom();
  const uint64_t had_acknowledged = acknowledged_;
  absl::Status drained = parts_.completions->Drain([&](const ibv_wc& completion) {
    any = true;
    const RequestId id = RequestId::Unpack(completion.wr_id);
    // The completion of a queue pair without a counterpart at the peer.
    if (id.lane >= lanes_.size()) return absl::OkStatus();
    if (completion.status != IBV_WC_SUCCESS) return CompletionError(id, completion);
    if (!id.receive) {
      OnSent(id);
      return absl::OkStatus();
    }
    moved = true;
    lanes_[id.lane].OnReceived();
    return OnReceived(id.lane, completion);
  });
  if (!drained.ok()) return drained;
  if (!any) return false;
  trusted_until_ = parts_.port->Now() + kTrusted;
  if (moved) {
    for (Lane& lane : lanes_) {
      if (absl::Status status = lane.RepostReceives(); !status.ok()) return status;
    }
  }
  return moved || acknowledged_ != had_acknowledged || lanes_[turn_].HasRoom() != had_room;
}

absl::Status Channel::OnReceived(size_t lane, const ibv_wc& completion) {
  const absl::StatusOr<uint32_t> value = lanes_[lane].pair()->Take(completion);
  if (!value.ok()) return ProtocolError(value.status().message());
  heard_peer_ = true;
  const uint32_t counter = ImmediateCounter(*value);
  switch (ImmediateKind(*value)) {
    case static_cast<uint32_t>(MessageKind::kFrame):
      return OnFrame(lane, counter);
    case static_cast<uint32_t>(MessageKind::kConsumed):
      if (send_credits_.Report(counter, lane)) return absl::OkStatus();
      return ProtocolError("a report of more frames than were sent");
    case static_cast<uint32_t>(MessageKind::kGreeting):
      return absl::OkStatus();
    default:
      return ProtocolError("a message of unknown kind");
  }
}

absl::Status Channel::OnFrame(size_t lane, uint32_t counter) {
  const std::optional<uint64_t> number = receive_credits_.Arrive(counter, lane);
  if (!number.has_value()) return ProtocolError("a frame out of sequence or without a credit");
  SlotHeader& header = arrived_headers_[*number % arrived_headers_.size()];
  std::memcpy(&header, parts_.receive_ring->Slot(*number) + kHeaderOffset, sizeof(header));
  constexpr uint32_t kExclusive = kPlacedFlag | kRepeatedFlag;
  if (header.sequence != counter || !AreFlags(header.flags, kPlacedFlag) ||
      (header.flags & kExclusive) == kExclusive || header.reserved != 0) {
    return ProtocolError("a frame that does not match its slot");
  }
  if (header.payload > parts_.receive_ring->slot_payload()) {
    return ProtocolError(absl::StrCat("a frame of ", header.payload, " bytes, more than a slot"));
  }
  if (!send_credits_.Report(header.consumed, lane)) {
    return ProtocolError("a report of more frames than were sent");
  }
  return absl::OkStatus();
}

void Channel::OnSent(const RequestId& id) {
  greeting_acknowledged_ = true;  // it was the first request
  Lane& lane = lanes_[id.lane];
  lane.OnSent(id.number);
  uint64_t& oldest = oldest_[id.lane];
  for (; oldest < send_credits_.sent(); oldest += lanes_.size()) {
    InFlight& frame = in_flight_[oldest % in_flight_.size()];
    if (frame.request > lane.completed()) break;
    bytes_in_flight_ -= frame.bytes;
    if (frame.region != nullptr) --gathered_;
    frame.region.reset();
  }
  acknowledged_ = *std::min_element(oldest_.begin(), oldest_.end());
}

absl::StatusOr<bool> Channel::Deliver(FrameSink sink) {
  // Most polls find nothing.
  if (!receive_credits_.pending() && !awaited_ && !receive_credits_.ReportDue()) return false;
  bool moved = false;
  while (receive_credits_.pending()) {
    const uint64_t number = receive_credits_.consumed();
    const SlotHeader& header = arrived_headers_[number % arrived_headers_.size()];
    const std::byte* const payload = parts_.receive_ring->Slot(number) + kPayloadOffset;
    FrameHeader frame = HeaderFrom(header);
    frame.placed = (header.flags & kPlacedFlag) != 0;
    if (!sink(frame, {frame.placed ? nullptr : payload, header.payload})) break;
    stats_.receive_bytes.fetch_add(header.payload, std::memory_order_relaxed);
    receive_credits_.Consume();
    awaited_ = awaited_ || frame.awaited;
    moved = true;
    if (absl::Status status = ReportConsumed(receive_credits_.ReportDue()); !status.ok()) {
      return status;
    }
  }
  // A report that was due may have found the send queue full, or may have become due since: frames
  // that arrived after it filled the peer's window. A peer that waits for a report gets one when no
  // more frames have arrived.
  const bool answers = awaited_ && !moved;
  if (absl::Status status = ReportConsumed(receive_credits_.ReportDue() || answers); !status.ok()) {
    return status;
  }
  return moved || (answers && !awaited_);
}

absl::Status Channel::ReportConsumed(bool due) {
  if (!due || !lanes_.front().HasRoom()) return absl::OkStatus();
  awaited_ = false;
  return PostMessage(MessageKind::kConsumed, receive_credits_.TakeReport());
}

absl::Status Channel::PostMessage(MessageKind kind, uint64_t counter) {
  Message message;
  message.value = PackImmediate(kind, counter);
  message.remote_address = peer_.address.ring_address;
  message.remote_key = peer_.address.ring_key;
  return lanes_.front().Send(message);
}

absl::Status Channel::LookAfterIdle() {
  parts_.port->LookAtEvents();
  if (parts_.port->downs() != parts_.downs) {
    return absl::UnavailableError(
        absl::StrCat(peer_.where, ": the device reported its port down; this side's port is ",
                     parts_.port->StateNow(), kCheckPort));
  }
  const absl::Time now = parts_.port->Now();
  next_look_ = std::min(next_look_, now + kLookInterval);
  if (now < next_look_) return absl::OkStatus();
  next_look_ = now + kLookInterval;
  return LookAfterLanes(now);
}

absl::Status Channel::LookAfterLanes(absl::Time now) {
  for (Lane& lane : lanes_) {
    const absl::Duration silence = lane.LookForSilence(now);
    if (!lane.SignalOutstanding()) {
      if (absl::Status status = PostProbe(lane); !status.ok()) return status;
      continue;
    }
    const absl::Duration patience = lane.pair()->patience();
    if (silence < std::min(kPortDownPatience, patience)) continue;
    const std::string port_state = parts_.port->StateNow();
    if (port_state == kActive && silence < patience) continue;
    return absl::UnavailableError(
        absl::StrCat(peer_.where, ": no send completion from the NIC for ",
                     absl::FormatDuration(silence), "; this side's port is ", port_state,
                     port_state == kActive ? ": see the kernel's log on this node" : kCheckPort));
  }
  return absl::OkStatus();
}

absl::Status Channel::PostProbe(Lane& lane) {
  return lane.Probe(peer_.address.ring_address, peer_.address.ring_key);
}

absl::Status Channel::CompletionError(const RequestId& id, const ibv_wc& completion) const {
  const std::string port_state = parts_.port->StateNow();
  const bool port_down = port_state != kActive;
  const std::string message = absl::StrCat(
      peer_.where, ": ", id.receive ? "receive" : "send",
      lanes_.size() > 1 ? absl::StrCat(" on queue pair ", id.lane + 1, " of ", lanes_.size()) : "",
      " failed: ", parts_.port->api().WcStatusText(completion.status), " (status ",
      static_cast<int>(completion.status), ", vendor error ", completion.vendor_err, "); ",
      port_down ? absl::StrCat("this side's port is ", port_state, kCheckPort)
                : WhatToCheck(completion.status));
  // Before the greeting is over this is only an attempt.
  if (port_down || !greeted()) return absl::UnavailableError(message);
  switch (completion.status) {
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_FATAL_ERR:
    // rdma_rxe reports so that it has no route or neighbour at the moment, siw that its TCP
    // connection broke.
    case IBV_WC_LOC_QP_OP_ERR:
      return absl::UnavailableError(message);
    // This side's fault: on another rail it would be the same.
    default:
      return absl::InternalError(message);
  }
}

absl::Status Channel::ProtocolError(absl::string_view what) const {
  return absl::InternalError(absl::StrCat(peer_.where, ": the peer sent ", what,
                                          "; run the same version of Railhead on all ranks"));
}

}  // namespace railhead::transport::verbs
