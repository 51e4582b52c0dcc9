// SPDX-License-Identifier: Apache-2.0
//
// Acceptors with a listener of their own on the loopback, for tests.
#ifndef RAILHEAD_RUNTIME_TESTING_ACCEPTORS_H_
#define RAILHEAD_RUNTIME_TESTING_ACCEPTORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/net/address.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/connect/rail_listener.h"

namespace railhead::testing {

inline std::shared_ptr<transport::Acceptor> OpenAcceptor(size_t peers = 1, uint32_t rank = 0,
                                                         transport::RailKey key = {}) {
  return *transport::Acceptor::Open(
      *transport::RailListener::Open(*net::IpAddress::Parse("127.0.0.1")), peers, rank,
      std::move(key));
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_ACCEPTORS_H_
