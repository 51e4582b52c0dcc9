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
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/leaf_groups.h"
#include "fabric/discovery/listed.h"
#include "fabric/discovery/machine_kinds.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/nic_kinds.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/outsiders.h"
#include "fabric/discovery/rail_cables.h"
#include "fabric/discovery/told_rails.h"
#include "fabric/rail_limit.h"

namespace railhead::fabric {
namespace {

// Returns whether the node has more NICs than the maximum number of rails: then several hosts share
// its name, and it does not define a kind.
bool Crowded(const Nics& nics) { return nics.size() > kMaxRails; }

void TellCrowded(const std::string& node, size_t nics, size_t left_out,
                 std::vector<Finding>& findings) {
  findings.push_back({Severity::kFail, kContradiction, node,
                      absl::StrCat("has ", nics, " NICs with cables; the maximum is ", kMaxRails,
                                   " rails, so several hosts probably share this name; ", left_out,
                                   " of its NICs are ignored"),
                      "give each host a unique name"});
}

void TellMore(const std::string& node, const std::vector<std::string>& nics,
              std::vector<Finding>& findings) {
  findings.push_back({Severity::kNote, kStorage, node,
                      absl::StrCat("no other machine of its kind has a NIC named ", Listed(nics),
                                   "; not used as a rail"),
                      "if it is a rail, run the node agent, whose facts list the rails"});
}

// Assigns rails to the NICs as in `kind` (omitting NICs that it lacks), or, without a kind, by
// position. Returns the omitted NICs.
std::vector<std::string> Seat(const Nics& nics, const NicKind* kind, std::vector<RailNic>& rails) {
  size_t next = 0;
  std::vector<std::string> left_out;
  for (const auto& [name, cable] : nics) {
    size_t number = next++;
    if (kind != nullptr) {
      const auto at = std::lower_bound(kind->begin(), kind->end(), name, NaturalOrder());
      const bool there = at != kind->end() && *at == name;
      number = there ? static_cast<size_t>(at - kind->begin()) : rails.size();
    }
    if (number >= rails.size()) {
      left_out.push_back(name);
      continue;
    }
    rails[number].nic = name;
    rails[number].cable = cable;
    rails[number].gbps = cable.gbps;
  }
  for (size_t number = 0; kind != nullptr && number < kind->size(); ++number) {
    if (rails[number].there()) continue;
    rails[number].nic = (*kind)[number];
    rails[number].dead = true;
    rails[number].reason = "no source shows a cable on it";
  }
  return left_out;
}

void FromCables(const Network& network, const Rows& rows, std::vector<Finding>& findings) {
  std::map<std::string, Nics> nics_of;
  for (const NodeRails* row : rows) nics_of[row->node] = OneForEachHca(network.nics.at(row->node));
  std::vector<const Nics*> measures;
  for (const NodeRails* row : rows) {
    const Nics& nics = nics_of[row->node];
    if (!Crowded(nics)) measures.push_back(&nics);
  }
  const NicKinds kinds(measures, JoinedNetworks(network));
  std::vector<std::string> uncertain;
  for (NodeRails* row : rows) {
    row->rails.resize(kinds.rails() == 0 ? kMaxRails : kinds.rails());
    const Nics& nics = nics_of[row->node];
    const bool crowded = Crowded(nics);
    const NicKind* kind = crowded ? kinds.Only() : kinds.Find(nics);
    const std::vector<std::string> left_out = Seat(nics, kind, row->rails);
    if (crowded) {
      TellCrowded(row->node, nics.size(), left_out.size(), findings);
    } else if (!left_out.empty()) {
      TellMore(row->node, left_out, findings);
    }
    if (kind != nullptr || crowded) continue;
    row->certain = false;
    uncertain.push_back(row->node);
  }
  if (uncertain.empty()) return;
  findings.push_back(
      {Severity::kNote, kNoFacts, Listed(uncertain),
       "some NICs may be missing from the sources, so rails follow from switches, not from names, "
       "and no cable is reported as miswired",
       "run the node agent there, whose facts list the rails"});
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
  const std::vector<int> network_of = JoinedNetworks(network);
  ToldKinds kinds(network_of);
  const Nics none;
  const auto nics_of = [&](const NodeRails& row) -> const Nics& {
    const auto nics = network.nics.find(row.node);
    return nics == network.nics.end() ? none : nics->second;
  };
  for (NodeRails& row : nodes) {
    row.facts = row.kubernetes != nullptr && row.kubernetes->rails.has_value();
    if (!row.facts) continue;
    row.rails = FromFacts(*row.kubernetes->rails, nics_of(row));
    kinds.Add(*row.kubernetes->rails, nics_of(row));
    told.push_back(&row);
  }
  Rows silent;
  for (const NodeRails& row : nodes) {
    if (!row.facts && !nics_of(row).empty()) kinds.AddSilent(nics_of(row));
  }
  for (NodeRails& row : nodes) {
    if (row.facts || nics_of(row).empty()) continue;
    row.rails = kinds.Rails(nics_of(row));
    (row.rails.empty() ? silent : told).push_back(&row);
  }
  size_t rails = 0;
  for (const NodeRails* row : told) rails = std::max(rails, row->rails.size());
  for (NodeRails* row : told) row->rails.resize(rails);
  FromCables(network, silent, findings);
  NumberKinds(nodes);
  LeaveOutsidersOut(network, silent, findings);
  TellOutsiders(network, told, findings);
  for (const NodeRails& row : nodes) rails = std::max(rails, row.rails.size());
  for (NodeRails& row : nodes) row.rails.resize(std::min(rails, kMaxRails));
  NumberKinds(nodes);  // again: nodes with the same NICs may differ after that
  return nodes;
}

NodeCables CablesOf(const NodeRails& node) {
  NodeCables cables;
  cables.kind = node.kind;
  cables.certain = node.certain;
  cables.rails.reserve(node.rails.size());
  for (const RailNic& rail : node.rails) {
    std::vector<int>& at = cables.rails.emplace_back();
    if (rail.cable.at >= 0) at.push_back(rail.cable.at);
    for (const SlaveCable& slave : rail.slaves) at.push_back(slave.cable.at);
  }
  return cables;
}

}  // namespace railhead::fabric
