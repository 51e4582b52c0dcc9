// SPDX-License-Identifier: Apache-2.0
//
// The rails of nodes that tell nothing of them, by the names of their NICs.
#ifndef RAILHEAD_FABRIC_DISCOVERY_NIC_KINDS_H_
#define RAILHEAD_FABRIC_DISCOVERY_NIC_KINDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "fabric/discovery/network.h"
#include "fabric/discovery/nic_wiring.h"

namespace railhead::fabric {

// Names of all NICs that a kind of machine has, in natural order: the rails.
using NicKind = std::vector<std::string>;

// Machines of one kind have NICs of the same names, and what one of them lacks is missing. Names of
// a node are those of a kind when a second node has the very same; or when it has as many as any
// node and shares none with others. Otherwise a NIC may be missing, and it is not known which.
//
// Nodes that have some of the NICs of a larger kind, and the very same ones, lack the others (a
// leaf switch of one rail is down). They are a kind of their own when they lack half of them or
// more, and at least two; when their cables say so: their NICs are where the larger kind has
// others; or when they are most of those who are at its switches, so that no switch is down. One
// machine with more NICs than several others is like them, and what it has beyond them is no rail.
class NicKinds {
 public:
  // `network_of` tells of each switch to which network it belongs.
  NicKinds(const std::vector<const Nics*>& nodes, const std::vector<int>& network_of);

  // How many NICs the largest kind has; at least as many as any node.
  size_t rails() const { return rails_; }

  // The kind that has these NICs, or has them all and the fewest others; or else the kind that a
  // machine is like which has more. Null where there is none, or where kinds differ on them.
  const NicKind* Find(const Nics& nics) const;

  // Where all nodes are of one kind; else null.
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
