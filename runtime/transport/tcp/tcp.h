// SPDX-License-Identifier: Apache-2.0
//
// TCP transport: one connection per peer and rail, frames with a small header.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/link.h"
#include "runtime/transport/tcp/frame_protection.h"

namespace railhead::transport {

// Returns a link to the peer with this acceptor address, not connected yet; it connects like a lost
// link. The peer must do the same, at any time. `peer` names it in errors. Connections without the
// job's key are rejected (reconnector.h). With `protection`, which must be equal on both sides, a
// changed or foreign frame ends the connection.
absl::StatusOr<std::unique_ptr<Link>> OpenTcpLink(
    std::shared_ptr<Acceptor> acceptor, Locator peer_acceptor, absl::string_view peer,
    FrameProtection protection = FrameProtection::kNone);

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_H_
