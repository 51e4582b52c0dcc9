// SPDX-License-Identifier: Apache-2.0
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/transport/verbs/address.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/gid.h"
#include "runtime/transport/verbs/queue_pair.h"
#include "runtime/transport/verbs/ring.h"
#include "runtime/transport/verbs/slot.h"
#include "runtime/transport/verbs/verbs.h"
#include "runtime/transport/verbs/verbs_link.h"

namespace railhead::transport {
namespace verbs {
namespace {

// 16 slots are four times what may be on the wire, so a sink may pause without stopping the sender.
// Where memory cannot be pinned, fewer slots are slower but far better than no RDMA.
constexpr std::array<uint32_t, 3> kSlotCounts = {16, 8, 4};

constexpr uint8_t kHopLimit = 64;

// Unpredictable, so that nobody who cannot see the rail's packets can forge the next one.
absl::StatusOr<uint32_t> RandomPsn(const DevicePort& port) {
  uint32_t value = 0;
  ssize_t got = 0;
  do {
    got = getrandom(&value, sizeof(value), 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof(value)) return VerbsError(port.name(), "get random bytes", errno);
  return value & 0xffffff;
}

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

absl::StatusOr<ibv_ah_attr> RouteTo(const DevicePort& port, const VerbsAddress& peer,
                                    const std::optional<GidPair>& gids) {
  ibv_ah_attr route = {};
  route.port_num = port.port();
  bool global = true;
  if (port.infiniband()) {
    const bool flagged = (port.attributes().flags & IBV_QPF_GRH_REQUIRED) != 0 || peer.needs_grh;
    // Subnets are told apart by the upper half of the GID.
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
        absl::StrCat("no kind of GID in common: this side has ", KindNames(port.gids()),
                     ", the peer has ", KindNames(peer.gids),
                     "; give both nodes' interfaces of this rail an address of the same family"));
  }
  route.is_global = 1;
  std::memcpy(route.grh.dgid.raw, gids->peer.gid.data(), gids->peer.gid.size());
  route.grh.sgid_index = static_cast<uint8_t>(gids->local.index);
  route.grh.hop_limit = kHopLimit;
  return route;
}

class VerbsEndpoint final : public Endpoint {
 public:
  VerbsEndpoint(LinkParts parts, absl::string_view peer) : parts_(std::move(parts)), peer_(peer) {
    const DevicePort& port = *parts_->port;
    address_.infiniband = port.infiniband();
    address_.needs_grh = (port.attributes().flags & IBV_QPF_GRH_REQUIRED) != 0;
    address_.mtu = port.attributes().active_mtu;
    address_.lid = port.infiniband() ? port.attributes().lid : 0;
    address_.qp_number = parts_->pair->number();
    address_.psn = parts_->psn;
    address_.slots = parts_->receive_ring.slots();
    address_.slot_payload = parts_->receive_ring.slot_payload();
    address_.ring_address = parts_->receive_ring.address();
    address_.ring_key = parts_->receive_ring.remote_key();
    address_.gids = port.gids();
  }

  std::string Address() const override { return EncodeAddress(address_); }

  absl::StatusOr<std::unique_ptr<Link>> Connect(absl::string_view peer_address,
                                                absl::Time deadline) override {
    if (!parts_.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("peer ", peer_, ": Connect was called before on this verbs endpoint"));
    }
    const DevicePort& port = *parts_->port;
    std::string where = absl::StrCat(port.name(), ", peer ", peer_);
    absl::StatusOr<VerbsAddress> peer = ParseAddress(peer_address);
    if (!peer.ok()) return At(where, peer.status());
    if (peer->infiniband != port.infiniband()) {
      return absl::FailedPreconditionError(absl::StrCat(
          where, ": this side's port is ", port.infiniband() ? "InfiniBand" : "Ethernet",
          ", the peer's is not; check that the rails of the two nodes are numbered alike"));
    }
    const std::optional<GidPair> gids = CommonGids(port.gids(), peer->gids);
    absl::StrAppend(&where, " at ", PeerAddressText(*peer, gids));
    absl::StatusOr<ibv_ah_attr> route = RouteTo(port, *peer, gids);
    if (!route.ok()) return At(where, route.status());

    LinkPeer link_peer;
    link_peer.path.qp_number = peer->qp_number;
    link_peer.path.mtu = std::min(peer->mtu, port.attributes().active_mtu);
    link_peer.path.route = *route;
    link_peer.where = std::move(where);
    link_peer.address = *std::move(peer);
    LinkParts parts = *std::move(parts_);
    parts_.reset();
    return VerbsLink::Start(std::move(parts), std::move(link_peer), deadline);
  }

 private:
  static absl::Status At(absl::string_view where, const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
  }

  std::optional<LinkParts> parts_;  // until Connect hands them to the link
  std::string peer_;
  VerbsAddress address_;
};

absl::StatusOr<std::unique_ptr<Endpoint>> OpenWithSlots(
    const std::shared_ptr<const DevicePort>& port, absl::string_view peer, uint32_t slots) {
  absl::StatusOr<Ring> send_ring = Ring::Create(*port, Ring::Use::kSend, slots, kSlotPayload);
  if (!send_ring.ok()) return send_ring.status();
  absl::StatusOr<Ring> receive_ring = Ring::Create(*port, Ring::Use::kReceive, slots, kSlotPayload);
  if (!receive_ring.ok()) return receive_ring.status();
  absl::StatusOr<std::unique_ptr<QueuePair>> pair = QueuePair::Create(*port, DepthsFor(slots));
  if (!pair.ok()) return pair.status();
  if (absl::Status status = (*pair)->Initialize(); !status.ok()) return status;
  if (absl::Status status = PostAllReceives(**pair, 0); !status.ok()) return status;
  const absl::StatusOr<uint32_t> psn = RandomPsn(*port);
  if (!psn.ok()) return psn.status();
  return std::make_unique<VerbsEndpoint>(
      LinkParts{port, *std::move(send_ring), *std::move(receive_ring), *std::move(pair), *psn},
      peer);
}

}  // namespace
}  // namespace verbs

absl::StatusOr<std::unique_ptr<Endpoint>> OpenVerbsEndpoint(VerbsDevice& device,
                                                            absl::string_view peer) {
  absl::Status status;
  for (const uint32_t slots : verbs::kSlotCounts) {
    absl::StatusOr<std::unique_ptr<Endpoint>> endpoint =
        verbs::OpenWithSlots(device.port(), peer, slots);
    if (endpoint.ok()) return endpoint;
    status = endpoint.status();
    if (!absl::IsResourceExhausted(status)) break;
  }
  return absl::Status(status.code(), absl::StrCat("peer ", peer, ": ", status.message()));
}

}  // namespace railhead::transport
