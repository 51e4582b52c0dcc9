// SPDX-License-Identifier: Apache-2.0
//
// What one side prepares for a connection: queue pairs that nobody has used, over iWARP a port
// where it listens, and what the peer must know of them. Every connection of a link begins with two
// new offers, which the two sides exchange: what an earlier connection still has under way finds no
// queue pair, so it can neither land in a slot that is used again nor be counted.
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

// The registered memory of a link, the same for all its connections.
struct Rings {
  Ring send;
  Ring receive;

  // As many slots as can be pinned. ResourceExhausted when not even few can.
  static absl::StatusOr<Rings> Create(const DevicePort& port);

  // Whether so many can be had at once, be they small, by trying.
  static absl::Status CanPin(const DevicePort& port, size_t count);

  // How many bytes that pins where there are enough, and where there are as few as can be.
  static uint64_t MostBytes();
  static uint64_t LeastBytes();
};

class Offer {
 public:
  // With the port as it is now: its GIDs may have changed since the last time. `rings` and `memory`
  // outlive it and its channel.
  static absl::StatusOr<Offer> Make(std::shared_ptr<const DevicePort> port, const Rings& rings,
                                    UserMemory& memory);

  // What the peer's Accept needs; untrusted there.
  std::string Address() const { return EncodeAddress(own_); }

  // Connects to the offer that the peer has made for this one; `peer` names it in errors. The
  // deadline is that of the greeting.
  absl::StatusOr<std::unique_ptr<Channel>> Accept(absl::string_view peer_address,
                                                  absl::string_view peer, absl::Time deadline,
                                                  LinkStats& stats) &&;

 private:
  Offer(ChannelParts parts, PortState state, std::optional<CmListener> listener, VerbsAddress own)
      : parts_(std::move(parts)),
        state_(std::move(state)),
        listener_(std::move(listener)),
        own_(std::move(own)) {}

  // How to connect to `theirs`, which it describes at the end of `where`.
  absl::StatusOr<std::unique_ptr<Connection>> ConnectionTo(const VerbsAddress& theirs,
                                                           LinkStats& stats, std::string& where);
  absl::StatusOr<std::unique_ptr<Connection>> IwarpTo(const CmAddress& theirs, LinkStats& stats);

  ChannelParts parts_;
  PortState state_;
  std::optional<CmListener> listener_;  // of iWARP
  VerbsAddress own_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_OFFER_H_
