// SPDX-License-Identifier: Apache-2.0
//
// Rails that this rank can offer: its RDMA rails, from the rails file and the settings, and its
// TCP addresses. Used by Setup before rank 0 decides for all ranks.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_OWN_RAILS_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_OWN_RAILS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/pod_rails.h"
#include "runtime/comm/setup/decision.h"
#include "runtime/comm/setup/rdma_rail.h"
#include "runtime/comm/setup/setup.h"
#include "runtime/comm/setup/tcp_rail.h"
#include "runtime/config/env.h"
#include "runtime/net/address.h"
#include "runtime/preflight/facts.h"

namespace railhead::comm {

struct OwnRails {
  RankReport report;           // for rank 0; contains the error of each rail that does not open
  preflight::RankFacts facts;  // about the rails, in the order of report.rails
  std::map<int, fabric::PodRail> pod_rails;          // rails of the file that the settings name
  std::map<int, std::unique_ptr<RdmaRail>> devices;  // of these rails; some open later
};

// Opens the RDMA rails, unless the settings exclude RDMA. `self`: this rank's name, for the log.
OwnRails OpenOwnRails(const std::string& self, const SetupOptions& options);

// Returns a rail for each interface that the settings name; without one, a rail with the address
// `local`, or a likely public one. `known`: rails of the communicator that this one is made of,
// whose addresses are used for interfaces that have none now.
std::vector<TcpRail> OwnTcpRails(const config::Settings& settings,
                                 const std::optional<net::IpAddress>& local,
                                 const std::vector<TcpRail>& known);

// Returns the address on which RDMA rails set up their connections: that of the first TCP rail that
// can be opened, or else of the first that has one; nullopt if none has.
std::optional<net::IpAddress> ControlAddress(const std::vector<TcpRail>& rails);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_OWN_RAILS_H_
