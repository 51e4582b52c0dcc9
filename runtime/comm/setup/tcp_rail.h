// SPDX-License-Identifier: Apache-2.0
//
// A TCP rail as one rank has it: an interface, which may be down. Used by Setup, and kept for the
// communicators that are made of this one.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_TCP_RAIL_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_TCP_RAIL_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/log.h"
#include "runtime/net/address.h"
#include "runtime/transport/connect/rail_listener.h"

namespace railhead::comm {

struct TcpRail {
  std::string interface;
  bool named = false;  // by the settings; otherwise it is the interface of the address
  std::optional<net::IpAddress> address;  // the last one; nullopt if it has had none
  std::string trouble = "";               // why it cannot be opened; "" if it can
  bool unknown = false;                   // see TcpReport
};

// Returns the state of an interface that the settings name.
TcpRail FindTcpRail(const std::string& interface);

// Returns the process's listener at the rail's present address: of several, its last one. An error
// means that the interface has no address. Connections of a rail that the settings name come and go
// by its interface; `name` and `log`: see transport::RailInterface.
absl::StatusOr<std::shared_ptr<transport::RailListener>> ListenerOf(const TcpRail& rail,
                                                                    const std::string& name,
                                                                    const Logger& log);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_TCP_RAIL_H_
