// SPDX-License-Identifier: Apache-2.0
//
// A rail over plain TCP: one connection per peer, frames with a small header.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/transport/door/hall.h"
#include "runtime/transport/link.h"

namespace railhead::transport {

// A link to the peer whose hall has this address, not connected yet: it connects as one that was
// lost does. The peer must do the same, sooner or later. `peer` names it in errors. Strangers who
// connect are turned away (door.h). With `sign_frames`, on both sides or none, a frame that was
// changed on its way, or that the peer has not sent, ends the connection.
absl::StatusOr<std::unique_ptr<Link>> OpenTcpLink(std::shared_ptr<Hall> hall, Locator peer_hall,
                                                  absl::string_view peer, bool sign_frames = false);

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_H_
