// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/other_networks.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/rail_cables.h"

namespace railhead::fabric {
namespace {

using Names = std::set<std::string>;

// Returns the names of the rails of each node with facts. Nodes whose cables have other names
// ("HCA-1") are omitted.
std::map<std::string, Names> NamesOfRails(const Observations& seen, const Network& network) {
  std::map<std::string, Names> of_node;
  for (const SeenNode& node : seen.nodes) {
    const auto nics = network.nics.find(node.name);
    if (!node.rails.has_value() || nics == network.nics.end()) continue;
    Names names;
    for (const RailNics& of_rail : NicsOfRails(*node.rails, nics->second)) {
      names.insert(of_rail.data.begin(), of_rail.data.end());
      names.insert(of_rail.spare.begin(), of_rail.spare.end());
    }
    if (!names.empty()) of_node[node.name].merge(names);
  }
  return of_node;
}

// Returns for each kind of machine with facts the names of all NICs: rails, with or without a known
// cable, and others.
std::set<Names> NamesOfMachines(const Observations& seen, const Network& network) {
  std::set<Names> machines;
  for (const SeenNode& node : seen.nodes) {
    const auto nics = network.nics.find(node.name);
    if (!node.rails.has_value() || nics == network.nics.end()) continue;
    Names names;
    for (const auto& [nic, cable] : nics->second) names.insert(HcaOf(nic));
    for (const SeenRail& rail : *node.rails) {
      names.insert({rail.device, rail.netdev});
      names.insert(rail.slaves.begin(), rail.slaves.end());
    }
    machines.insert(std::move(names));
  }
  return machines;
}

// Returns whether a node without facts may be such a machine.
bool IsOne(const std::set<Names>& machines, const Nics& nics) {
  return std::any_of(machines.begin(), machines.end(), [&nics](const Names& names) {
    return std::all_of(nics.begin(), nics.end(),
                       [&names](const auto& nic) { return names.count(HcaOf(nic.first)) > 0; });
  });
}

// Numbers of nodes with a NIC at one switch. Facts of a node list its rails.
struct Count {
  size_t told = 0;          // nodes with facts
  size_t told_without = 0;  // of these, nodes without a rail there
  size_t others = 0;        // nodes without facts
  size_t others_without = 0;
  std::string first;  // a NIC that is not a rail

  size_t all() const { return told > 0 ? told : others; }
  size_t without() const { return told > 0 ? told_without : others_without; }
};

}  // namespace

void LeaveOtherNetworksOut(const Observations& seen, Network& network,
                           std::vector<Finding>& findings) {
  const std::map<std::string, Names> rails = NamesOfRails(seen, network);
  Names rail_names;
  for (const auto& [node, names] : rails) rail_names.insert(names.begin(), names.end());
  Names other_names;
  for (const auto& [node, names] : rails) {
    for (const auto& [nic, cable] : network.nics.at(node)) {
      // InfiniBand has no separate management network.
      if (cable.evidence == Evidence::kLldp && rail_names.count(nic) == 0) other_names.insert(nic);
    }
  }
  const std::set<Names> machines = NamesOfMachines(seen, network);
  std::map<int, Count> at;
  for (const auto& [node, nics] : network.nics) {
    const auto told = rails.find(node);
    const bool known = told != rails.end() || IsOne(machines, nics);
    std::map<int, bool> has_rail;  // by switch
    for (const auto& [nic, cable] : nics) {
      const bool no_rail = known && other_names.count(nic) > 0 &&
                           (told == rails.end() || told->second.count(nic) == 0);
      has_rail[cable.at] |= !no_rail;
      std::string& first = at[cable.at].first;
      if (no_rail && first.empty()) first = absl::StrCat(nic, " of ", node);
    }
    for (const auto& [which, rail] : has_rail) {
      Count& count = at[which];
      ++(told != rails.end() ? count.told : count.others);
      if (!rail) ++(told != rails.end() ? count.told_without : count.others_without);
    }
  }
  std::erase_if(at,
                [](const auto& entry) { return entry.second.without() * 2 <= entry.second.all(); });
  if (at.empty()) return;
  for (const auto& [which, count] : at) {
    const std::string& name = network.switches[static_cast<size_t>(which)];
    findings.push_back(
        {Severity::kNote, kStorage, name,
         absl::StrCat(count.without(), " of the ", count.all(),
                      " nodes with a cable at it have no rail there (but NICs such as ",
                      count.first,
                      ") according to their node agents; treated as a switch of the management or "
                      "storage network, so it is neither a leaf nor above one"),
         "nothing to do if it is one; else add its NICs to the resources in the node agents' "
         "configuration"});
  }
  std::erase_if(network.switch_links, [&](const auto& link) {
    return at.count(link.first) > 0 || at.count(link.second) > 0;
  });
  for (auto& [node, nics] : network.nics) {
    const auto told = rails.find(node);
    std::erase_if(nics, [&](const auto& entry) {
      const bool rail = told != rails.end() && told->second.count(entry.first) > 0;
      return at.count(entry.second.at) > 0 && !rail;
    });
  }
  std::erase_if(network.nics, [](const auto& entry) { return entry.second.empty(); });
}

}  // namespace railhead::fabric
