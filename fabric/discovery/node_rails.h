// SPDX-License-Identifier: Apache-2.0
//
// Which NIC of a node is which rail.
#ifndef RAILHEAD_FABRIC_DISCOVERY_NODE_RAILS_H_
#define RAILHEAD_FABRIC_DISCOVERY_NODE_RAILS_H_

#include <string>
#include <vector>

#include "fabric/discovery/finding.h"
#include "fabric/discovery/leaf_groups.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// A NIC as the rail that it is.
struct RailNic {
  std::string nic;        // its name; empty: the node has none on this rail
  Cable cable;            // at -1: nobody has seen one
  std::vector<int> also;  // the switches of further cables of the HCA: of other ports, of a bond
  double gbps = 0;        // 0: nobody says
  bool dead = false;
  std::string reason;  // why it is dead, as the node's agent says it
  bool miswired = false;

  bool there() const { return !nic.empty(); }
};

struct NodeRails {
  std::string node;
  const SeenNode* kubernetes = nullptr;  // none: Kubernetes was not asked
  bool facts = false;
  bool certain = true;         // else NICs are known, but not which is which rail
  std::vector<RailNic> rails;  // as many for each node
};

// Rails are what the nodes' agents say. Where they say nothing, they are the NICs that have a
// cable, in natural order of their names, as machines of this kind have them (nic_kinds.h): a
// missing one leaves its rail empty (and dead), and where the kind is not known, nor are the rails.
// NICs whose switches are not joined to those of most NICs are storage's or of the management
// network: they are left out, or where an agent offers them, kept and told. At most 64 rails.
std::vector<NodeRails> FindRails(const Observations& seen, const Network& network,
                                 std::vector<Finding>& findings);

SwitchOfRail SwitchesOf(const NodeRails& node);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_NODE_RAILS_H_
