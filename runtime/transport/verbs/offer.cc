// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/offer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/random.h"
#include "runtime/transport/verbs/cm_acceptor.h"
#include "runtime/transport/verbs/cm_dialer.h"
#include "runtime/transport/verbs/completion_queue.h"
#include "runtime/transport/verbs/gid.h"
#include "runtime/transport/verbs/lane.h"
#include "runtime/transport/verbs/pkey.h"
#include "runtime/transport/verbs/slot.h"

namespace railhead::transport::verbs {
namespace {

// 16 slots are four times what may be on the wire, so a sink may pause without stopping the sender.
// If memory cannot be pinned, fewer slots are slower but far better than no RDMA.
constexpr std::array<uint32_t, 3> kSlotCounts = {16, 8, 4};

constexpr uint8_t kHopLimit = 64;

std::string KindNames(absl::Span<const GidChoice> gids) {
  if (gids.empty()) return "none";
  return absl::StrJoin(gids, ", ", [](std::string* out, const GidChoice& choice) {
    absl::StrAppend(out, GidKindName(choice.kind), " ", GidText(choice.gid));
  });
}

std::string PeerAddressText(const VerbsAddress& address, const std::optional<GidPair>& gids) {
  if (address.infiniband) return absl::StrCat("LID ", address.lid);
  return gids.has_value() ? GidText(gids->peer.gid) : "unknown address";
}

absl::Status NoCommonPkey(const DevicePort& port, const VerbsAddress& peer) {
  return absl::FailedPreconditionError(absl::StrCat(
      "no partition in common: this side has P_Keys ", PkeyText(WithoutIndices(port.pkeys())),
      ", the peer has ", PkeyText(peer.pkeys),
      "; have the subnet manager put both ports into one partition, at least one of them as a full "
      "member (0x8000), and set the same RAILHEAD_IB_PKEY on all ranks"));
}

absl::StatusOr<Rings> CreateRings(const DevicePort& port, uint32_t slots) {
  absl::StatusOr<Ring> send = Ring::Create(port, Ring::Use::kSend, slots, kSlotPayload);
  if (!send.ok()) return send.status();
  absl::StatusOr<Ring> receive = Ring::Create(port, Ring::Use::kReceive, slots, kSlotPayload);
  if (!receive.ok()) return receive.status();
  return Rings{*std::move(send), *std::move(receive)};
}

absl::Status At(absl::string_view where, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

}  // namespace

absl::StatusOr<ibv_ah_attr> RouteTo(const DevicePort& port, const PortState& state,
                                    const VerbsAddress& peer, const std::optional<GidPair>& gids) {
  ibv_ah_attr route = {};
  route.port_num = port.port();
  route.sl = port.settings().service_level;
  bool global = true;
  if (state.infiniband()) {
    const bool flagged = (state.attributes.flags & IBV_QPF_GRH_REQUIRED) != 0 || peer.needs_grh;
    // The upper half of the GID identifies the subnet.
    const bool other_subnet =
        gids.has_value() &&
        !std::equal(gids->local.gid.begin(), gids->local.gid.begin() + 8, gids->peer.gid.begin());
    global = flagged || other_subnet;
    if (!global && peer.lid == 0) {
      return absl::InvalidArgumentError("the peer's port has no LID; check its subnet manager");
    }
    route.dlid = peer.lid;
  }
  if (!global) return route;
  if (!gids.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no kind of GID in common: this side has ", KindNames(state.gids),
                     ", the peer has ", KindNames(peer.gids),
                     "; give both nodes' interfaces of this rail an address of the same family"));
  }
  route.is_global = 1;
  std::memcpy(route.grh.dgid.raw, gids->peer.gid.data(), gids->peer.gid.size());
  route.grh.sgid_index = static_cast<uint8_t>(gids->local.index);
  route.grh.hop_limit = kHopLimit;
  route.grh.traffic_class = port.settings().traffic_class;
  return route;
}

uint64_t Rings::MostBytes() { return 2 * Ring::Bytes(kSlotCounts.front(), kSlotPayload); }

uint64_t Rings::LeastBytes() { return 2 * Ring::Bytes(kSlotCounts.back(), kSlotPayload); }

absl::StatusOr<Rings> Rings::Create(const DevicePort& port) {
  absl::StatusOr<Rings> rings = absl::UnknownError("");
  for (const uint32_t slots : kSlotCounts) {
    rings = CreateRings(port, slots);
    if (!absl::IsResourceExhausted(rings.status())) break;
  }
  return rings;
}

absl::Status Rings::CanPin(const DevicePort& port, size_t count) {
  std::vector<Rings> trial;
  while (trial.size() < count) {
    absl::StatusOr<Rings> rings = CreateRings(port, kSlotCounts.back());
    if (!rings.ok()) return rings.status();
    trial.push_back(*std::move(rings));
  }
  return absl::OkStatus();
}

absl::StatusOr<Offer> Offer::Make(std::shared_ptr<const DevicePort> port, const Rings& rings,
                                  UserMemory& memory) {
  const uint64_t downs = port->downs();
  absl::StatusOr<PortState> state = port->Read();
  if (!state.ok()) return state.status();
  const uint32_t slots = rings.send.slots();
  const size_t count = port->iwarp() ? 1 : port->settings().qps_per_rail;
  const QueueDepths depths = DepthsFor(slots);
  absl::StatusOr<std::shared_ptr<CompletionQueue>> completions =
      CompletionQueue::Create(*port, CompletionsFor(*port, depths, count));
  if (!completions.ok()) return completions.status();
  std::vector<std::shared_ptr<QueuePair>> pairs;
  for (size_t i = 0; i < count; ++i) {
    absl::StatusOr<std::unique_ptr<QueuePair>> pair =
        QueuePair::Create(*port, *completions, depths);
    if (!pair.ok()) return pair.status();
    if (absl::Status status = Lane::Prepare(**pair, i); !status.ok()) return status;
    pairs.push_back(*std::move(pair));
  }
  VerbsAddress own;
  own.infiniband = state->infiniband();
  own.needs_grh = (state->attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
  own.mtu = state->attributes.active_mtu;
  own.lid = own.infiniband ? state->attributes.lid : 0;
  own.slots = slots;
  own.slot_payload = rings.receive.slot_payload();
  own.ring_address = rings.receive.address();
  own.ring_key = rings.receive.remote_key();
  std::optional<CmListener> listener;
  if (port->iwarp()) {
    absl::StatusOr<CmListener> listens = CmListener::Open(port, state->addresses.front());
    if (!listens.ok()) return listens.status();
    own.iwarp = listens->address;
    listener = *std::move(listens);
  } else {
    // Unpredictable, so that an attacker must see the rail's packets to forge the next one.
    const absl::StatusOr<std::string> psn = RandomBytes(sizeof own.psn);
    if (!psn.ok()) return psn.status();
    std::memcpy(&own.psn, psn->data(), sizeof own.psn);
    own.psn &= 0xffffff;
    for (const std::shared_ptr<QueuePair>& pair : pairs) own.qp_numbers.push_back(pair->number());
    own.gids = state->gids;
    own.pkeys = WithoutIndices(port->pkeys());
  }
  return Offer({std::move(port), downs, &rings.send, &rings.receive, &memory,
                *std::move(completions), std::move(pairs)},
               *std::move(state), std::move(listener), std::move(own));
}

absl::StatusOr<std::unique_ptr<Connection>> Offer::ConnectionTo(const VerbsAddress& theirs,
                                                                LinkStats& stats,
                                                                std::string& where) {
  const auto kind = [](const VerbsAddress& address) {
    return address.iwarp.has_value() ? "iWARP" : address.infiniband ? "InfiniBand" : "Ethernet";
  };
  if (theirs.infiniband != own_.infiniband || theirs.iwarp.has_value() != own_.iwarp.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this side's port is ", kind(own_), ", the peer's is ", kind(theirs),
                     "; check that the rails of the two nodes have the same numbers"));
  }
  if (theirs.iwarp.has_value()) {
    absl::StrAppend(&where, " at ", theirs.iwarp->ip.ToString());
    return IwarpTo(*theirs.iwarp, stats);
  }
  const std::optional<GidPair> gids = CommonGids(state_.gids, theirs.gids);
  absl::StrAppend(&where, " at ", PeerAddressText(theirs, gids));
  absl::StatusOr<ibv_ah_attr> route = RouteTo(*parts_.port, state_, theirs, gids);
  if (!route.ok()) return route.status();
  const std::optional<PkeyChoice> pkey = CommonPkey(parts_.port->pkeys(), theirs.pkeys);
  if (!pkey.has_value()) return NoCommonPkey(*parts_.port, theirs);
  PeerPath path;
  path.mtu = std::min(theirs.mtu, state_.attributes.active_mtu);
  path.pkey_index = pkey->index;
  path.route = *route;
  // Both sides use the lower number of queue pairs, and destroy the others.
  parts_.pairs.resize(std::min(parts_.pairs.size(), theirs.qp_numbers.size()));
  for (size_t i = 1; i < parts_.pairs.size(); ++i) {
    path.qp_number = theirs.qp_numbers[i];
    if (absl::Status status = parts_.pairs[i]->Connect(path, theirs.psn, own_.psn); !status.ok()) {
      return status;
    }
  }
  path.qp_number = theirs.qp_numbers.front();
  return std::make_unique<PathConnection>(path, own_.psn, theirs.psn);
}

// Both sides listen; the smaller token dials.
absl::StatusOr<std::unique_ptr<Connection>> Offer::IwarpTo(const CmAddress& theirs,
                                                           LinkStats& stats) {
  if (listener_->address.token > theirs.token) {
    return std::make_unique<CmAcceptor>(*std::move(listener_), stats);
  }
  const auto from = std::find_if(
      state_.addresses.begin(), state_.addresses.end(),
      [&](const net::IpAddress& address) { return address.is_v4() == theirs.ip.is_v4(); });
  if (from == state_.addresses.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this side has no ", theirs.ip.is_v4() ? "IPv4" : "IPv6",
                     " address, and the peer listens at ", theirs.ip.ToString(),
                     "; give both nodes' interfaces of this rail an address of the same family"));
  }
  std::shared_ptr<CmEvents> events = listener_->events;
  listener_.reset();
  return std::make_unique<CmDialer>(std::move(events), *from, theirs);
}

absl::StatusOr<std::unique_ptr<Channel>> Offer::Accept(absl::string_view peer_address,
                                                       absl::string_view peer, absl::Time deadline,
                                                       LinkStats& stats) && {
  std::string where = absl::StrCat(parts_.port->name(), ", peer ", peer);
  absl::StatusOr<VerbsAddress> theirs = ParseAddress(peer_address);
  if (!theirs.ok()) return At(where, theirs.status());
  absl::StatusOr<std::unique_ptr<Connection>> connection = ConnectionTo(*theirs, stats, where);
  if (!connection.ok()) return At(where, connection.status());

  ChannelPeer channel_peer;
  channel_peer.where = std::move(where);
  channel_peer.address = *std::move(theirs);
  channel_peer.connection = *std::move(connection);
  return Channel::Start(std::move(parts_), std::move(channel_peer), deadline, stats);
}

}  // namespace railhead::transport::verbs
