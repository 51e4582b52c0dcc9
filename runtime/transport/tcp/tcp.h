// SPDX-License-Identifier: Apache-2.0
//
// A rail over plain TCP: one connection per peer, frames with a small header.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/net/address.h"
#include "runtime/transport/link.h"

namespace railhead::transport {

// Listens on `local`, an address of the interface that this rail shall use, for one peer; `peer`
// names it in errors. Strangers who connect are turned away: both sides prove that they know the
// random token in the other's address.
absl::StatusOr<std::unique_ptr<Endpoint>> OpenTcpEndpoint(const net::IpAddress& local,
                                                          absl::string_view peer);

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_TCP_H_
