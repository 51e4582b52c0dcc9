// SPDX-License-Identifier: Apache-2.0
//
// Rails from the facts of the nodes' agents, for their nodes and for machines with the same NICs.
#ifndef RAILHEAD_FABRIC_DISCOVERY_TOLD_RAILS_H_
#define RAILHEAD_FABRIC_DISCOVERY_TOLD_RAILS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/nic_wiring.h"
#include "fabric/discovery/node_rails.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Returns the rails of an agent's facts, with the cables of these NICs.
std::vector<RailNic> FromFacts(absl::Span<const SeenRail> facts, const Nics& nics);

// Kinds of machines, by the NICs in their agents' facts. A node without facts is of a kind if all
// its cables are on NICs that the kind has (rails or not), unless it is wired like no machine of
// the kind: several such nodes that have the same NIC where the kind has others are another kind
// with the same names. A single one has a misplaced cable.
class ToldKinds {
 public:
  // `network_of`: JoinedNetworks, which must outlive this.
  explicit ToldKinds(const std::vector<int>& network_of);

  // Adds a node with facts; its cables may be unknown.
  void Add(absl::Span<const SeenRail> facts, const Nics& nics);

  // Adds a node without facts. Add all of them before calling Rails.
  void AddSilent(const Nics& nics);

  // Returns the rails of a node without facts; empty if it is of no kind, or of kinds that differ.
  // A NIC without a cable is dead. The result is empty if half of the NICs or more have no cable,
  // since the node may be of a smaller kind without facts, and if more nodes without facts have
  // only these NICs than nodes with facts have the others.
  std::vector<RailNic> Rails(const Nics& nics) const;

 private:
  struct Kind {
    std::vector<SeenRail> rails;         // as in the facts of each node
    std::map<std::string, int> rail_of;  // by each name in cables
    std::set<std::string> others;        // NICs that are not rails
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
  std::map<Places, size_t> silent_at_switches_;  // number of nodes
  std::map<Places, size_t> silent_in_networks_;
  std::map<std::vector<std::string>, size_t> silent_with_;  // NICs of these names
  const std::vector<int>& network_of_;
  // By the facts of its nodes: number, port and names of the NIC of each rail.
  std::map<std::vector<std::tuple<int, int, std::vector<std::string>>>, Kind> kinds_;
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_TOLD_RAILS_H_
