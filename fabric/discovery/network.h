// SPDX-License-Identifier: Apache-2.0
//
// Network of cables from all sources, with one cable per NIC.
#ifndef RAILHEAD_FABRIC_DISCOVERY_NETWORK_H_
#define RAILHEAD_FABRIC_DISCOVERY_NETWORK_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/finding.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

struct NaturalOrder {
  bool operator()(const std::string& a, const std::string& b) const;
};

struct Cable {
  int at = -1;  // the switch
  std::string port;
  double gbps = 0;  // 0: unknown
  Evidence evidence = Evidence::kInfiniBand;
};

using Nics = std::map<std::string, Cable, NaturalOrder>;  // by their names

struct Network {
  std::vector<std::string> switches;               // their names, in natural order
  std::set<std::pair<int, int>> switch_links;      // lower number first
  std::map<std::string, Nics, NaturalOrder> nics;  // by node
};

// A device is a node if Kubernetes knows its name (or the part before the first dot); without
// Kubernetes, if it describes itself as a host. A device of unknown kind is a switch if it is a
// source itself, or a neighbour of a host; otherwise, as a neighbour of switches alone, it is the
// firmware of a NIC. If sources contradict each other about a NIC,
// InfiniBand takes precedence over LLDP, and a switch over a node; that is a finding.
Network BuildNetwork(const Observations& seen, std::vector<Finding>& findings);

// Returns for each switch the representative of its connected component.
std::vector<int> JoinedNetworks(const Network& network);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_NETWORK_H_
