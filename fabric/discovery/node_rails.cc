// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/node_rails.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/discovery/finding.h"
#include "fabric/discovery/leaf_groups.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/outsiders.h"

namespace railhead::fabric {
namespace {

constexpr size_t kMaxRails = 64;

// The rails that an agent tells, with the cables of these NICs. LLDP knows a NIC by its interface,
// InfiniBand by its device.
std::vector<RailNic> FromFacts(const std::vector<SeenRail>& facts, const Nics& nics) {
  std::vector<RailNic> rails;
  bool matched = false;
  for (const SeenRail& fact : facts) {
    rails.resize(std::max(rails.size(), static_cast<size_t>(fact.rail) + 1));
    RailNic& rail = rails[static_cast<size_t>(fact.rail)];
    rail.nic = fact.device;
    rail.gbps = fact.gbps;
    rail.dead = !fact.usable;
    rail.reason = fact.reason;
    auto nic = nics.find(fact.device);
    if (nic == nics.end() && !fact.netdev.empty()) nic = nics.find(fact.netdev);
    if (nic != nics.end()) rail.cable = nic->second;
    matched = matched || nic != nics.end();
  }
  // "n0 HCA-1": who set the node descriptions has other names. As many are the same ones. Names of
  // interfaces are the kernel's in both, so what LLDP calls otherwise is another NIC.
  const bool described = std::all_of(nics.begin(), nics.end(), [](const auto& nic) {
    return nic.second.evidence == Evidence::kInfiniBand;
  });
  if (!matched && described && nics.size() == facts.size()) {
    auto nic = nics.begin();
    for (const SeenRail& fact : facts) {
      rails[static_cast<size_t>(fact.rail)].cable = (nic++)->second;
    }
  }
  return rails;
}

// Whoever has more NICs than there can be rails is several hosts of one name, and no measure for
// the others.
bool Crowded(const Nics& nics) { return nics.size() > kMaxRails; }

void FromCables(const Network& network, const Rows& rows, std::vector<Finding>& findings) {
  std::map<std::string, size_t, NaturalOrder> names;
  size_t most = 0;
  for (const NodeRails* row : rows) {
    const Nics& nics = network.nics.at(row->node);
    if (Crowded(nics)) continue;
    most = std::max(most, nics.size());
    for (const auto& [name, cable] : nics) names.emplace(name, 0);
  }
  if (most == 0) most = kMaxRails;  // all are crowded
  const bool same_names = names.size() == most;
  size_t position = 0;
  for (auto& [name, rail] : names) rail = position++;
  for (NodeRails* row : rows) {
    row->rails.resize(most);
    const Nics& nics = network.nics.at(row->node);
    size_t next = 0;
    size_t left_out = 0;
    for (const auto& [name, cable] : nics) {
      size_t number = next++;
      if (same_names) {
        const auto known = names.find(name);
        number = known == names.end() ? most : known->second;
      }
      if (number >= most) {
        ++left_out;
        continue;
      }
      RailNic& rail = row->rails[number];
      rail.nic = name;
      rail.cable = cable;
      rail.gbps = cable.gbps;
    }
    if (Crowded(nics)) {
      findings.push_back(
          {FindingKind::kContradiction, true, row->node,
           absl::StrCat(row->node, " has ", nics.size(), " NICs with cables, and no ",
                        "node has more than ", kMaxRails, " rails: several hosts ",
                        "have this name, it seems; ", left_out, " of its NICs are ",
                        "left out: give each host a name of its own")});
    }
    if (!same_names) continue;
    for (const auto& [name, rail] : names) {
      if (row->rails[rail].there()) continue;
      row->rails[rail].nic = name;
      row->rails[rail].dead = true;
      row->rails[rail].reason = "nobody has seen a cable on it";
    }
  }
}

}  // namespace

std::vector<NodeRails> FindRails(const Observations& seen, const Network& network,
                                 std::vector<Finding>& findings) {
  std::map<std::string, NodeRails, NaturalOrder> found;
  for (const auto& [name, nics] : network.nics) found[name].node = name;
  for (const SeenNode& node : seen.nodes) {
    NodeRails& row = found[node.name];
    row.node = node.name;
    if (row.kubernetes == nullptr || node.rails.has_value()) row.kubernetes = &node;
  }
  std::vector<NodeRails> nodes;
  nodes.reserve(found.size());
  for (auto& [name, row] : found) nodes.push_back(std::move(row));
  Rows told;
  Rows silent;
  for (NodeRails& row : nodes) {
    row.facts = row.kubernetes != nullptr && row.kubernetes->rails.has_value();
    const auto nics = network.nics.find(row.node);
    if (row.facts) {
      row.rails =
          FromFacts(*row.kubernetes->rails, nics == network.nics.end() ? Nics() : nics->second);
      told.push_back(&row);
    } else if (nics != network.nics.end()) {
      silent.push_back(&row);
    }
  }
  size_t rails = 0;
  for (const NodeRails* row : told) rails = std::max(rails, row->rails.size());
  for (NodeRails* row : told) row->rails.resize(rails);
  FromCables(network, silent, findings);
  LeaveOutsidersOut(network, silent, findings);
  TellOutsiders(network, told, findings);
  for (const NodeRails* row : silent) rails = std::max(rails, row->rails.size());
  for (NodeRails& row : nodes) row.rails.resize(std::min(rails, kMaxRails));
  return nodes;
}

SwitchOfRail SwitchesOf(const NodeRails& node) {
  SwitchOfRail switches;
  switches.reserve(node.rails.size());
  for (const RailNic& rail : node.rails) switches.push_back(rail.cable.at);
  return switches;
}

}  // namespace railhead::fabric
