// SPDX-License-Identifier: Apache-2.0
//
// Which cables are a rail's. One HCA may have several: a cable for each port, or for each interface
// of a bond.
#ifndef RAILHEAD_FABRIC_DISCOVERY_RAIL_CABLES_H_
#define RAILHEAD_FABRIC_DISCOVERY_RAIL_CABLES_H_

#include <string>
#include <vector>

#include "fabric/discovery/network.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

struct RailNics {
  std::vector<std::string> data;   // that carry its data: of a bond all slaves, in natural order
  std::vector<std::string> spare;  // others of the same device
};

// Of each rail that an agent tells, its NICs among these. LLDP knows a NIC by its interface, or
// that of a bond's slave; InfiniBand by its device and port ("mlx5_0:2"). Ports of a device that
// another rail has are not this one's.
std::vector<RailNics> NicsOfRails(const std::vector<SeenRail>& facts, const Nics& nics);

// "mlx5_0" of "mlx5_0:2".
std::string HcaOf(const std::string& nic);

// The NICs with those of one HCA's ports as one, named like the HCA: the lowest port's.
Nics OneForEachHca(const Nics& nics);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_RAIL_CABLES_H_
