// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp.h"

#include <string>
#include <utility>

#include "runtime/net/fd.h"
#include "runtime/transport/door/door.h"
#include "runtime/transport/tcp/tcp_link.h"

namespace railhead::transport {
absl::StatusOr<std::unique_ptr<Link>> OpenTcpLink(std::shared_ptr<Hall> hall, Locator peer_hall,
                                                  absl::string_view peer) {
  absl::StatusOr<std::unique_ptr<Door>> door =
      Door::Open(std::move(hall), std::move(peer_hall), peer);
  if (!door.ok()) return door.status();
  const std::string name = (*door)->Name();
  return TcpLink::Create(net::Fd(), name, *std::move(door));
}

}  // namespace railhead::transport
