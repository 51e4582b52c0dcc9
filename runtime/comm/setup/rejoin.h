// SPDX-License-Identifier: Apache-2.0
//
// The address at which other ranks meet this process again after a loss of ranks, even of rank 0
// (rhCommShrink).
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_REJOIN_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_REJOIN_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/bootstrap/shared_listener.h"
#include "runtime/net/fd.h"

namespace railhead::comm {

// A listening socket on all addresses, shared by all communicators of a process. Thread-safe.
class RejoinListener {
 public:
  // Opened by the process's first communicator, closed by its last.
  static absl::StatusOr<std::shared_ptr<RejoinListener>> Get();

  uint16_t port() const { return port_; }

  // The socket, for any number of rendezvous at once.
  const std::shared_ptr<bootstrap::SharedListener>& socket() const { return socket_; }

 private:
  RejoinListener(net::Fd socket, uint16_t port)
      : socket_(std::make_shared<bootstrap::SharedListener>(std::move(socket))), port_(port) {}

  const std::shared_ptr<bootstrap::SharedListener> socket_;
  const uint16_t port_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_REJOIN_H_
