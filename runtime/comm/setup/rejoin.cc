// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/rejoin.h"

#include <optional>

#include "runtime/base/one_per_process.h"
#include "runtime/net/socket.h"

namespace railhead::comm {

absl::StatusOr<std::shared_ptr<RejoinListener>> RejoinListener::Get() {
  static OnePerProcess<RejoinListener> listener;
  return listener.Get([]() -> absl::StatusOr<std::shared_ptr<RejoinListener>> {
    absl::StatusOr<net::Fd> socket = net::Listen(std::nullopt, 0);
    if (!socket.ok()) return socket.status();
    socket->KeepFromChildren();
    const absl::StatusOr<net::SocketAddress> bound = net::LocalAddress(socket->get());
    if (!bound.ok()) return bound.status();
    return std::shared_ptr<RejoinListener>(new RejoinListener(*std::move(socket), bound->port));
  });
}

}  // namespace railhead::comm
