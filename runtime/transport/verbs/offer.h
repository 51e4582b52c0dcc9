// SPDX-License-Identifier: Apache-2.0
//
// Resources of one side for a new connection: unused queue pairs, for iWARP a listening port, and
// the information that the peer needs. Every connection of a link starts with two new ones,
// exchanged by the two sides: packets of an earlier connection find no queue pair, so they can
// neither reach a reused slot nor be counted.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_OFFER_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_OFFER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/transport/link.h"
#include "runtime/transport/verbs/address.h"
#include "runtime/transport/verbs/channel.h"
#include "runtime/transport/verbs/cm_listener.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/queue_pair.h"
#include "runtime/transport/verbs/ring.h"
#include "runtime/transport/verbs/user_memory.h"

namespace railhead::transport::verbs {

// Registered memory of a link, shared by all its connections.
struct Rings {
  Ring send;
  Ring receive;

  // Pins as many slots as possible. ResourceExhausted if even the minimum fails.
  static absl::StatusOr<Rings> Create(const DevicePort& port);

  // Checks by trying whether `count` rings can be pinned at once, at their minimum size.
  static absl::Status CanPin(const DevicePort& port, size_t count);

  // Pinned bytes at the maximum and minimum number of slots.
  static uint64_t MostBytes();
  static uint64_t LeastBytes();
};

// Returns the route to that address. FailedPrecondition if the two have no kind of GID in common,
// which `gids` are.
absl::StatusOr<ibv_ah_attr> RouteTo(const DevicePort& port, const PortState& state,
                                    const VerbsAddress& peer, const std::optional<GidPair>& gids);

class Offer {
 public:
  // Uses the current state of the port, whose GIDs may have changed. `rings` and `memory` must
  // outlive it and its channel.
  static absl::StatusOr<Offer> Make(std::shared_ptr<const DevicePort> port, const Rings& rings,
                                    UserMemory& memory);

  // Input of the peer's Accept, which does not trust it.
  std::string Address() const { return EncodeAddress(own_); }

  // Connects to the peer's counterpart; `peer` names it in errors. `deadline` is the handshake's.
  absl::StatusOr<std::unique_ptr<Channel>> Accept(absl::string_view peer_address,
                                                  absl::string_view peer, absl::Time deadline,
                                                  LinkStats& stats) &&;

 private:
  Offer(ChannelParts parts, PortState state, std::optional<CmListener> listener, VerbsAddress own)
      : parts_(std::move(parts)),
        state_(std::move(state)),
        listener_(std::move(listener)),
        own_(std::move(own)) {}

  // Returns how to connect to `theirs`, and appends its description to `where`.
  absl::StatusOr<std::unique_ptr<Connection>> ConnectionTo(const VerbsAddress& theirs,
                                                           LinkStats& stats, std::string& where);
  absl::StatusOr<std::unique_ptr<Connection>> IwarpTo(const CmAddress& theirs, LinkStats& stats);

  ChannelParts parts_;
  PortState state_;
  std::optional<CmListener> listener_;  // iWARP
  VerbsAddress own_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_OFFER_H_
