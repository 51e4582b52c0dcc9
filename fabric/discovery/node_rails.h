// SPDX-License-Identifier: Apache-2.0
//
// Determines which NIC of a node is which rail. Used by FuseObservations.
#ifndef RAILHEAD_FABRIC_DISCOVERY_NODE_RAILS_H_
#define RAILHEAD_FABRIC_DISCOVERY_NODE_RAILS_H_

#include <string>
#include <vector>

#include "base/finding.h"
#include "fabric/discovery/leaf_groups.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// A further cable of a rail: of a slave of its bond.
struct SlaveCable {
  std::string nic;
  Cable cable;
};

// The NIC of a rail.
struct RailNic {
  std::string nic;        // its name; empty: the node has none on this rail
  Cable cable;            // at -1: unknown
  std::string cable_nic;  // name of the NIC in the cable's source; may be empty
  std::vector<SlaveCable> slaves;
  std::vector<int> also;  // switches of cables of the HCA's other ports
  double gbps = 0;        // 0: unknown
  bool dead = false;
  std::string reason;  // why it is dead, from the node's agent
  bool miswired = false;

  bool there() const { return !nic.empty(); }
};

struct NodeRails {
  std::string node;
  const SeenNode* kubernetes = nullptr;  // null: no Kubernetes source
  bool facts = false;
  bool certain = true;         // false: NICs are known, but not their rails
  int kind = -1;               // nodes of one kind are comparable; -1: none (machine_kinds.h)
  std::vector<RailNic> rails;  // the same size for each node
};

// Rails come from the nodes' agents. A node without facts gets the rails of machines with the same
// NICs that have facts (told_rails.h). Otherwise rails are the NICs with a cable, in natural order
// of names, as machines of this kind have them (nic_kinds.h): a missing NIC leaves its rail empty
// (and dead); if the kind is unknown, so are the rails. NICs whose switches are not connected to
// those of most NICs belong to storage or management: they are removed, or, if an agent offers
// them, kept and reported. At most 64 rails.
std::vector<NodeRails> FindRails(const Observations& seen, const Network& network,
                                 std::vector<Finding>& findings);

// Returns for each rail the switches of its cables.
NodeCables CablesOf(const NodeRails& node);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_NODE_RAILS_H_
