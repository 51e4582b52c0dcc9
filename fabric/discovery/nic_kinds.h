// SPDX-License-Identifier: Apache-2.0
//
// Rails of nodes without facts, by the names of their NICs.
#ifndef RAILHEAD_FABRIC_DISCOVERY_NIC_KINDS_H_
#define RAILHEAD_FABRIC_DISCOVERY_NIC_KINDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "fabric/discovery/network.h"
#include "fabric/discovery/nic_wiring.h"

namespace railhead::fabric {

// NIC names of a kind of machine, in natural order: its rails.
using NicKind = std::vector<std::string>;

// Machines of one kind have NICs of the same names; a NIC that one of them lacks is missing. A
// node's names define a kind if a second node has exactly the same, or if it has as many as any
// node and shares none with others. Otherwise an unknown NIC may be missing.
//
// Nodes with exactly the same part of a larger kind's NICs lack the others (a leaf switch of one
// rail is down). They are a kind of their own if they lack at least half of them, and at least two;
// if their NICs are where the larger kind has others; or if they are most of the nodes at their
// switches, so that no switch is down. A single machine with more NICs than several others is of
// their kind; its additional NICs are not rails.
class NicKinds {
 public:
  // `network_of` gives the network of each switch.
  NicKinds(const std::vector<const Nics*>& nodes, const std::vector<int>& network_of);

  // Number of NICs of the largest kind; at least that of any node.
  size_t rails() const { return rails_; }

  // Returns the kind with exactly these NICs, or with all of them and the fewest others, or else
  // with the most of them. Null if there is none, or kinds differ.
  const NicKind* Find(const Nics& nics) const;

  // Returns the kind of all nodes; null if there are several.
  const NicKind* Only() const { return kinds_.size() == 1 ? kinds_.data() : nullptr; }

 private:
  const NicKind* FindLess(const Nics& nics, const NicKind& names) const;

  struct Wired {
    NicWiring switches;
    NicWiring networks;
  };
  std::vector<NicKind> kinds_;
  std::vector<Wired> wired_;  // of each kind
  std::vector<int> network_of_;
  size_t rails_ = 0;
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_NIC_KINDS_H_
