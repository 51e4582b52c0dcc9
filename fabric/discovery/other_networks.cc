// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/other_networks.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/discovery/finding.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/rail_cables.h"

namespace railhead::fabric {
namespace {

using Names = std::set<std::string>;

// Of each node that tells of its rails, the names that they have. Of one whose cables have other
// names ("HCA-1"), nothing can be said.
std::map<std::string, Names> NamesOfRails(const Observations& seen, const Network& network) {
  std::map<std::string, Names> of_node;
  for (const SeenNode& node : seen.nodes) {
    const auto nics = network.nics.find(node.name);
    if (!node.rails.has_value() || nics == network.nics.end()) continue;
    Names names;
    for (const std::vector<std::string>& of_rail : NicsOfRails(*node.rails, nics->second)) {
      names.insert(of_rail.begin(), of_rail.end());
    }
    if (!names.empty()) of_node[node.name].merge(names);
  }
  return of_node;
}

// The NICs at one switch.
struct Count {
  size_t all = 0;
  size_t no_rails = 0;
  std::string first;  // of those that are none
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
      // InfiniBand has no management network of its own.
      if (cable.evidence == Evidence::kLldp && rail_names.count(nic) == 0) other_names.insert(nic);
    }
  }
  // Nodes without facts have the same names, it is supposed.
  const auto no_rail = [&](const std::string& node, const std::string& nic) {
    const auto told = rails.find(node);
    return other_names.count(nic) > 0 && (told == rails.end() || told->second.count(nic) == 0);
  };
  std::map<int, Count> at;
  for (const auto& [node, nics] : network.nics) {
    for (const auto& [nic, cable] : nics) {
      Count& count = at[cable.at];
      ++count.all;
      if (!no_rail(node, nic)) continue;
      if (count.no_rails == 0) count.first = absl::StrCat(nic, " of ", node);
      ++count.no_rails;
    }
  }
  std::erase_if(at,
                [](const auto& entry) { return entry.second.no_rails * 2 <= entry.second.all; });
  if (at.empty()) return;
  for (const auto& [which, count] : at) {
    const std::string& name = network.switches[static_cast<size_t>(which)];
    findings.push_back(
        {FindingKind::kStorage, false, name,
         absl::StrCat(name, ": ", count.no_rails, " of its ", count.all, " NICs (such as ",
                      count.first,
                      ") have no rail behind them, as node agents say; taken for the management "
                      "network's or storage's, so it is neither a leaf nor above one")});
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
