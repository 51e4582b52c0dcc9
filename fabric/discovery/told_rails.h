// SPDX-License-Identifier: Apache-2.0
//
// Rails as the nodes' agents tell them: of their own nodes, and of machines with the same NICs.
#ifndef RAILHEAD_FABRIC_DISCOVERY_TOLD_RAILS_H_
#define RAILHEAD_FABRIC_DISCOVERY_TOLD_RAILS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fabric/discovery/network.h"
#include "fabric/discovery/nic_wiring.h"
#include "fabric/discovery/node_rails.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// The rails that an agent tells, with the cables of these NICs.
std::vector<RailNic> FromFacts(const std::vector<SeenRail>& facts, const Nics& nics);

// The NICs of the kinds of machines whose agents tell of them. A node that is silent is of such a
// kind when all its cables are on NICs that machines of that kind have, rails or not, and unless it
// is wired as no machine of that kind: several silent nodes that have the same NIC where the kind
// has others are another kind with the same names. One alone has a cable at the wrong place.
class ToldKinds {
 public:
  // Of JoinedNetworks, which must outlive this.
  explicit ToldKinds(const std::vector<int>& network_of);

  // Each with its cables, which are none where nobody has seen one.
  void Add(const std::vector<SeenRail>& facts, const Nics& nics);

  // All silent nodes, before their rails are asked for.
  void AddSilent(const Nics& nics);

  // The rails of such a node; empty where it is of no kind, or of kinds that differ on it. A NIC
  // without a cable is dead. They are left out where half of them or more have none, since the node
  // may be of a smaller kind that nobody tells of; and where more silent nodes have these NICs
  // alone than machines tell of the others.
  std::vector<RailNic> Rails(const Nics& nics) const;

 private:
  struct Kind {
    std::vector<SeenRail> rails;         // as each node tells them
    std::map<std::string, int> rail_of;  // by each name that a cable of it may have
    std::set<std::string> others;        // NICs that are no rails
    size_t nodes = 0;
    NicWiring switches{nullptr};
    NicWiring networks{nullptr};
  };
  using Places = std::vector<std::pair<std::string, int>>;  // of each NIC
  static std::vector<std::string> NamesOf(const Nics& nics);
  static Places PlacesOf(const NicWiring& wiring, const Nics& nics);
  bool Contradicts(const Kind& kind, const Nics& nics) const;

  const NicWiring by_switch_{nullptr};
  const NicWiring by_network_;
  std::map<Places, size_t> silent_at_switches_;  // how many nodes
  std::map<Places, size_t> silent_in_networks_;
  std::map<std::vector<std::string>, size_t> silent_with_;  // NICs of these names
  const std::vector<int>& network_of_;
  // By what all nodes of it tell: of each rail number, port, and the names of its NIC.
  std::map<std::vector<std::tuple<int, int, std::vector<std::string>>>, Kind> kinds_;
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_TOLD_RAILS_H_
