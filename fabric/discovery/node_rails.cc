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

namespace railhead::fabric {
namespace {

constexpr size_t kMaxRails = 64;

using Rows = std::vector<NodeRails*>;

// Of each switch, a switch that stands for all that are joined to it.
std::vector<int> Networks(const Network& network) {
  std::vector<int> of(network.switches.size());
  std::vector<std::vector<int>> neighbours(of.size());
  for (const auto& [a, b] : network.switch_links) {
    neighbours[static_cast<size_t>(a)].push_back(b);
    neighbours[static_cast<size_t>(b)].push_back(a);
  }
  std::fill(of.begin(), of.end(), -1);
  for (size_t i = 0; i < of.size(); ++i) {
    std::vector<int> next = {static_cast<int>(i)};
    while (!next.empty()) {
      const auto at = static_cast<size_t>(next.back());
      next.pop_back();
      if (of[at] >= 0) continue;
      of[at] = static_cast<int>(i);
      next.insert(next.end(), neighbours[at].begin(), neighbours[at].end());
    }
  }
  return of;
}

// Rails whose NICs are for the most part in a network that the others are not in. Where no network
// has more rails than any other (planes, rails without a spine), none is an outsider.
std::set<size_t> Outsiders(const Rows& rows, const std::vector<int>& network_of) {
  std::map<int, std::vector<size_t>> rails_in;
  const size_t rails = rows.empty() ? 0 : rows[0]->rails.size();
  std::vector<std::set<int>> networks(rails);
  for (size_t rail = 0; rail < rails; ++rail) {
    std::map<int, size_t> count;
    for (const NodeRails* row : rows) {
      const int at = row->rails[rail].cable.at;
      if (at >= 0) ++count[network_of[static_cast<size_t>(at)]];
    }
    size_t all = 0;
    for (const auto& [network, nics] : count) all = std::max(all, nics);
    // A leaf without a spine is a network of its own, and there may be many; a cable that hangs
    // wrong is alone.
    for (const auto& [network, nics] : count) {
      if (nics * 4 > all) networks[rail].insert(network);
    }
  }
  // Rails that share a network are of one kind.
  std::vector<size_t> kind(rails);
  for (size_t a = 0; a < rails; ++a) {
    kind[a] = a;
    for (size_t b = 0; b < a; ++b) {
      const bool shared = std::any_of(networks[a].begin(), networks[a].end(),
                                      [&](int network) { return networks[b].count(network) > 0; });
      if (!shared) continue;
      const size_t from = kind[a];
      std::replace(kind.begin(), kind.begin() + static_cast<std::ptrdiff_t>(a) + 1, from, kind[b]);
    }
  }
  std::map<size_t, size_t> sizes;
  for (size_t rail = 0; rail < rails; ++rail) {
    if (!networks[rail].empty()) ++sizes[kind[rail]];
  }
  size_t largest = 0;
  size_t second = 0;
  size_t main_kind = 0;
  for (const auto& [which, size] : sizes) {
    if (size > largest) {
      second = std::exchange(largest, size);
      main_kind = which;
    } else {
      second = std::max(second, size);
    }
  }
  std::set<size_t> outsiders;
  if (largest == second || largest < 2) return outsiders;
  for (size_t rail = 0; rail < rails; ++rail) {
    if (!networks[rail].empty() && kind[rail] != main_kind) outsiders.insert(rail);
  }
  return outsiders;
}

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

std::string ShownSwitches(const Rows& rows, size_t rail, const Network& network) {
  std::set<int> at;
  for (const NodeRails* row : rows) {
    if (row->rails[rail].cable.at >= 0) at.insert(row->rails[rail].cable.at);
  }
  const std::string first = network.switches[static_cast<size_t>(*at.begin())];
  return at.size() == 1 ? first : absl::StrCat(first, " and ", at.size() - 1, " more");
}

void LeaveOutsidersOut(const Network& network, const std::vector<int>& networks, const Rows& rows,
                       std::vector<Finding>& findings) {
  const std::set<size_t> outsiders = Outsiders(rows, networks);
  for (auto rail = outsiders.rbegin(); rail != outsiders.rend(); ++rail) {
    std::string name;
    for (const NodeRails* row : rows) {
      if (name.empty()) name = row->rails[*rail].nic;
    }
    findings.push_back({FindingKind::kStorage, false, "",
                        absl::StrCat(name, " of ", rows.size(), " nodes is at ",
                                     ShownSwitches(rows, *rail, network),
                                     ", a network that most NICs are not in: taken for storage's "
                                     "or the management network, and not for a rail")});
    for (NodeRails* row : rows) {
      row->rails.erase(row->rails.begin() + static_cast<std::ptrdiff_t>(*rail));
    }
  }
}

// The rate that most NICs of a rail have.
double UsualGbps(const Rows& rows, size_t rail) {
  std::map<double, size_t> count;
  for (const NodeRails* row : rows) {
    if (row->rails[rail].gbps > 0) ++count[row->rails[rail].gbps];
  }
  const auto most = std::max_element(
      count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == count.end() ? 0 : most->first;
}

void TellOutsiders(const Network& network, const std::vector<int>& networks, const Rows& rows,
                   std::vector<Finding>& findings) {
  const std::set<size_t> outsiders = Outsiders(rows, networks);
  const size_t rails = rows.empty() ? 0 : rows[0]->rails.size();
  std::vector<double> usual(rails);
  for (size_t rail = 0; rail < rails; ++rail) usual[rail] = UsualGbps(rows, rail);
  std::vector<double> sorted = usual;
  std::sort(sorted.begin(), sorted.end());
  const double middle = sorted.empty() ? 0 : sorted[sorted.size() / 2];
  for (size_t rail = 0; rail < rails; ++rail) {
    std::vector<std::string> why;
    if (outsiders.count(rail) > 0) {
      why.push_back(absl::StrCat("is at ", ShownSwitches(rows, rail, network),
                                 ", a network that the other rails are not in"));
    }
    if (usual[rail] > 0 && usual[rail] * 2 <= middle) {
      why.push_back(absl::StrCat("runs at ", usual[rail], " Gbit/s, and the others at ", middle));
    }
    if (why.empty()) continue;
    findings.push_back(
        {FindingKind::kStorage, true, "",
         absl::StrCat("rail ", rail, " ", absl::StrJoin(why, " and "),
                      ": it looks like storage's NIC, but the node agents offer it for compute; "
                      "give it a resource of its own in their configuration (resources, "
                      "selectors)")});
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
  const std::vector<int> networks = Networks(network);
  FromCables(network, silent, findings);
  LeaveOutsidersOut(network, networks, silent, findings);
  TellOutsiders(network, networks, told, findings);
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
