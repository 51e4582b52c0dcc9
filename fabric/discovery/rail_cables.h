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

// Of each rail that an agent tells, its NICs among these; the one that carries its data first. LLDP
// knows a NIC by its interface, or that of a bond's slave; InfiniBand by its device and port
// ("mlx5_0:2"). Ports of a device that another rail has are not this one's.
std::vector<std::vector<std::string>> NicsOfRails(const std::vector<SeenRail>& facts,
                                                  const Nics& nics);

// The NICs with those of one HCA's ports as one, named like the HCA: the lowest port's.
Nics OneForEachHca(const Nics& nics);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_RAIL_CABLES_H_
