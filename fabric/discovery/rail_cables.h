// SPDX-License-Identifier: Apache-2.0
//
// Assigns cables to rails. An HCA may have several: one per port, or per interface of a bond.
#ifndef RAILHEAD_FABRIC_DISCOVERY_RAIL_CABLES_H_
#define RAILHEAD_FABRIC_DISCOVERY_RAIL_CABLES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

struct RailNics {
  std::vector<std::string> data;   // that carry its data: of a bond all slaves, in natural order
  std::vector<std::string> spare;  // others of the device
};

// Returns for each rail of an agent's facts its NICs in `nics`. LLDP names a NIC by its interface,
// or a bond's slave; InfiniBand by device and port ("mlx5_0:2"). Excludes ports of the device that
// another rail has.
std::vector<RailNics> NicsOfRails(absl::Span<const SeenRail> facts, const Nics& nics);

// Returns "mlx5_0" of "mlx5_0:2".
std::string HcaOf(const std::string& nic);

// Merges the ports of each HCA into one NIC with the HCA's name and the lowest port's cable.
Nics OneForEachHca(const Nics& nics);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_RAIL_CABLES_H_
