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

// A further cable that carries a rail's data: of a slave of its bond.
struct SlaveCable {
  std::string nic;
  Cable cable;
};

// A NIC as the rail that it is.
struct RailNic {
  std::string nic;        // its name; empty: the node has none on this rail
  Cable cable;            // at -1: nobody has seen one
  std::string cable_nic;  // what who saw it calls the NIC; may be empty
  std::vector<SlaveCable> slaves;
  std::vector<int> also;  // the switches of further cables of the HCA: of other ports
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
  int kind = -1;               // nodes of one kind can be compared; -1: of none (machine_kinds.h)
  std::vector<RailNic> rails;  // as many for each node
};

// Rails are what the nodes' agents say. A node whose agent says nothing has the rails of machines
// with the same NICs whose agents do (told_rails.h). Else rails are the NICs that have a cable, in
// natural order of their names, as machines of this kind have them (nic_kinds.h): a missing one
// leaves its rail empty (and dead), and where the kind is not known, nor are the rails. NICs whose
// switches are not joined to those of most NICs are storage's or of the management network: they
// are left out, or where an agent offers them, kept and told. At most 64 rails.
std::vector<NodeRails> FindRails(const Observations& seen, const Network& network,
                                 std::vector<Finding>& findings);

// Of each rail the switches that its data goes to.
NodeCables CablesOf(const NodeRails& node);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_NODE_RAILS_H_
