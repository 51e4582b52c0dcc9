// SPDX-License-Identifier: Apache-2.0
//
// What this rank has to connect with: its RDMA rails, from the rails file and the settings, and its
// TCP addresses. Used by Setup before rank 0 decides for all ranks.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_OWN_RAILS_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_OWN_RAILS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/pod_rails.h"
#include "runtime/comm/setup/decision.h"
#include "runtime/comm/setup/rdma_rail.h"
#include "runtime/comm/setup/setup.h"
#include "runtime/config/env.h"
#include "runtime/net/address.h"
#include "runtime/preflight/facts.h"

namespace railhead::comm {

struct OwnRails {
  RankReport report;           // for rank 0; contains the error of each rail that does not open
  preflight::RankFacts facts;  // about the rails, in the order of report.rails
  std::map<int, fabric::PodRail> pod_rails;          // rails of the file that the settings name
  std::map<int, std::unique_ptr<RdmaRail>> devices;  // those of them that open
};

// Opens the RDMA rails, unless the settings exclude RDMA. `self`: this rank's name, for the log.
OwnRails OpenOwnRails(const std::string& self, const SetupOptions& options);

// Returns the address of each interface that the settings name; without one, `local` or a likely
// public address. Returns an error that names the setting.
absl::StatusOr<std::vector<net::IpAddress>> OwnTcpAddresses(
    const config::Settings& settings, const std::optional<net::IpAddress>& local);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_OWN_RAILS_H_
