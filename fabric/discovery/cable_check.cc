// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/cable_check.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/leaf_groups.h"
#include "fabric/discovery/leaf_rails.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {
namespace {

class Checker {
 public:
  Checker(const Network& network, const LeafGroups& groups, const LeafRails& rails,
          const std::vector<SwitchOfRail>& leaves, std::vector<NodeRails>& nodes,
          std::vector<Finding>& findings)
      : network_(network), groups_(groups), rails_(rails), nodes_(nodes), findings_(findings) {
    for (size_t group = 0; group < leaves.size(); ++group) {
      for (const int at : leaves[group]) leaves_of_[at].insert(static_cast<int>(group));
    }
    for (const NodeRails& node : nodes) ++nodes_of_kind_[node.kind];
  }

  void Check() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int group = groups_.group_of_node[i];
      if (group < 0 || !nodes_[i].certain) continue;
      CheckNode(nodes_[i], group);
      TellUnseen(nodes_[i], group);
      const int shown = rails_.KindShown(group);
      if (nodes_[i].kind != shown && nodes_of_kind_[nodes_[i].kind] == 1) {
        TellLone(nodes_[i], rails_.shown()[static_cast<size_t>(group)]);
      }
    }
    TellSplit();
  }

 private:
  void CheckNode(NodeRails& node, int group) {
    for (size_t r = 0; r < node.rails.size(); ++r) {
      RailNic& rail = node.rails[r];
      if (rail.cable.at < 0) continue;
      const RailPlaces& places = rails_.Of(group, node.kind, r);
      const size_t cables = 1 + rail.slaves.size();
      const auto check = [&](const std::string& nic, const Cable& cable) {
        const auto leaves = leaves_of_.find(cable.at);
        const bool elsewhere = leaves != leaves_of_.end() && leaves->second.count(group) == 0;
        if (!elsewhere && !places.Wrong(cable.at, cables)) return;
        const std::string name =
            rail.slaves.empty() ? rail.nic : absl::StrCat(nic, " of bond ", rail.nic);
        TellMiswired(node, name, cable, r, group);
        rail.miswired = true;
      };
      const bool also = std::count(rail.also.begin(), rail.also.end(), places.right()) > 0;
      if (places.split() || also) continue;
      check(rail.cable_nic, rail.cable);
      for (const SlaveCable& slave : rail.slaves) check(slave.nic, slave.cable);
    }
  }

  void TellUnseen(const NodeRails& node, int group) {
    std::vector<std::string> unseen;
    size_t cabled = 0;
    for (size_t r = 0; r < node.rails.size(); ++r) {
      const RailNic& rail = node.rails[r];
      if (rail.cable.at >= 0) {
        ++cabled;
      } else if (rail.there() && !rail.dead && Right(node, group, r) >= 0) {
        unseen.push_back(absl::StrCat(r, " (", rail.nic, ")"));
      }
    }
    // If most cables of a node are unknown, no source covers the node.
    if (unseen.empty() || cabled < unseen.size()) return;
    findings_.push_back(
        {Severity::kFail, kContradiction, node.node,
         absl::StrCat("rail ", absl::StrJoin(unseen, ", "),
                      " is up according to its node agent, but no source shows a cable on it; the "
                      "agent is trusted"),
         "check that the switch sends LLDP on this port and that the subnet's list is current"});
  }

  // Returns the switch where nodes of the same kind have the rail; for the only node of a kind,
  // where the others have it.
  int Right(const NodeRails& node, int group, size_t rail) const {
    const int right = rails_.Of(group, node.kind, rail).right();
    const bool alone = nodes_of_kind_.at(node.kind) == 1;
    return right >= 0 && !alone ? right : rails_.shown()[static_cast<size_t>(group)][rail];
  }

  // A machine unlike all others may be of another kind, or have lost a NIC before its agent
  // started; then its rails are numbered as if that NIC had never existed.
  void TellLone(const NodeRails& node, const SwitchOfRail& shown) {
    std::vector<std::string> moved;
    size_t rails = 0;
    for (size_t r = 0; r < node.rails.size(); ++r) {
      const RailNic& rail = node.rails[r];
      if (rail.there()) ++rails;
      const auto other = std::find(shown.begin(), shown.end(), rail.cable.at);
      if (rail.cable.at < 0 || rail.miswired || shown[r] == rail.cable.at) continue;
      if (other == shown.end()) continue;
      moved.push_back(absl::StrCat(r, " is at ", SwitchName(rail.cable.at), " as rail ",
                                   other - shown.begin(), " of others"));
    }
    if (moved.empty()) return;
    const auto usual = static_cast<size_t>(
        std::count_if(shown.begin(), shown.end(), [](int at) { return at >= 0; }));
    findings_.push_back(
        {rails < usual && rails * 2 > usual ? Severity::kFail : Severity::kNote, kContradiction,
         node.node,
         absl::StrCat("no other node has its NICs, and its rails (", rails,
                      ") are at other switches than those of its neighbours (", usual, "): rail ",
                      moved[0],
                      moved.size() == 1 ? "" : absl::StrCat(", and ", moved.size() - 1, " more"),
                      "; no cable is reported as wrong"),
         "if a NIC is missing, reinsert it and restart the node agent, or cordon the node"});
  }

  // If the nodes of a leaf are evenly divided, no cable can be reported as wrong.
  void TellSplit() {
    std::map<std::tuple<int, int, size_t>, std::map<int, std::vector<std::string>>> nodes_at;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int group = groups_.group_of_node[i];
      if (group < 0 || !nodes_[i].certain) continue;
      for (size_t r = 0; r < nodes_[i].rails.size(); ++r) {
        const int at = nodes_[i].rails[r].cable.at;
        if (at < 0 || !rails_.Of(group, nodes_[i].kind, r).split()) continue;
        nodes_at[{group, nodes_[i].kind, r}][at].push_back(nodes_[i].node);
      }
    }
    for (const auto& [where, switches] : nodes_at) {
      std::vector<std::string> sides;
      for (const auto& [at, nodes] : switches) {
        sides.push_back(absl::StrCat(
            nodes[0], nodes.size() == 1 ? "" : absl::StrCat(" and ", nodes.size() - 1, " more"),
            " at ", SwitchName(at)));
      }
      findings_.push_back(
          {Severity::kFail, kContradiction, absl::StrCat("rail ", std::get<size_t>(where)),
           absl::StrCat("nodes of one leaf have it at several switches without a majority: ",
                        absl::StrJoin(sides, ", "), "; so no cable is reported as wrong"),
           "compare the cables with the plan"});
    }
  }

  void TellMiswired(const NodeRails& node, const std::string& name, const Cable& cable, size_t rail,
                    int group) {
    const std::string nic =
        absl::StrCat(name, " (rail ", rail, ") is at ", SwitchName(cable.at), " port ", cable.port);
    const int right = Right(node, group, rail);
    const auto tell = [&](const char* check, absl::string_view where) {
      const bool elsewhere = right < 0 || right == cable.at;
      findings_.push_back(
          {Severity::kFail, check, node.node,
           absl::StrCat(nic, where,
                        elsewhere ? "; the node's other NICs are elsewhere"
                                  : absl::StrCat("; most nodes of its leaf have rail ", rail,
                                                 " at ", SwitchName(right))),
           elsewhere ? "move the cable to its leaf's switch of this rail"
                     : absl::StrCat("move the cable to ", SwitchName(right))});
    };
    for (size_t other = 0; other < node.rails.size(); ++other) {
      if (rails_.Of(group, node.kind, other).right() != cable.at || other == rail) continue;
      return tell(kMiswired, absl::StrCat(", where other nodes have rail ", other));
    }
    const auto leaves = leaves_of_.find(cable.at);
    if (leaves != leaves_of_.end() && leaves->second.count(group) == 0) {
      return tell(kTwoLeaves, ", a switch of another leaf, so the node is in two leaves");
    }
    tell(kMiswired, ", which is not a leaf switch");
  }

  std::string SwitchName(int at) const { return network_.switches[static_cast<size_t>(at)]; }

  const Network& network_;
  const LeafGroups& groups_;
  const LeafRails& rails_;
  std::vector<NodeRails>& nodes_;
  std::vector<Finding>& findings_;
  std::map<int, std::set<int>> leaves_of_;  // of each switch
  std::map<int, size_t> nodes_of_kind_;
};

}  // namespace

void CheckCables(const Network& network, const LeafGroups& groups, const LeafRails& rails,
                 const std::vector<SwitchOfRail>& leaves, std::vector<NodeRails>& nodes,
                 std::vector<Finding>& findings) {
  Checker(network, groups, rails, leaves, nodes, findings).Check();
}

}  // namespace railhead::fabric
