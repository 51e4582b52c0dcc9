// SPDX-License-Identifier: Apache-2.0
//
// The cables that all sources have seen, with one answer for each NIC.
#ifndef RAILHEAD_FABRIC_DISCOVERY_NETWORK_H_
#define RAILHEAD_FABRIC_DISCOVERY_NETWORK_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fabric/discovery/finding.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

struct NaturalOrder {
  bool operator()(const std::string& a, const std::string& b) const;
};

struct Cable {
  int at = -1;  // the switch
  std::string port;
  double gbps = 0;  // 0: not told
  Evidence evidence = Evidence::kInfiniBand;
};

using Nics = std::map<std::string, Cable, NaturalOrder>;  // by their names

struct Network {
  std::vector<std::string> switches;               // their names, in natural order
  std::set<std::pair<int, int>> switch_links;      // lower number first
  std::map<std::string, Nics, NaturalOrder> nics;  // by node
};

// A device is a node when Kubernetes knows it by its name (or by what stands before the first dot);
// without Kubernetes, when it says that it is a host. Where sources contradict one another on a
// NIC, InfiniBand is believed before LLDP, and a switch before a node; that is a finding.
Network BuildNetwork(const Observations& seen, std::vector<Finding>& findings);

// Of each switch, a switch that stands for all that are joined to it.
std::vector<int> JoinedNetworks(const Network& network);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_NETWORK_H_
