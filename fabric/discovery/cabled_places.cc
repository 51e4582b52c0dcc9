// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/cabled_places.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/discovery/finding.h"
#include "fabric/discovery/free_name.h"
#include "fabric/discovery/leaf_groups.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"
#include "fabric/discovery/tiers.h"

namespace railhead::fabric {
namespace {

constexpr size_t kMaxNamed = 4;

std::string LevelName(size_t tier) {
  constexpr const char* kNames[] = {"leaf", "spine", "core"};
  return tier < std::size(kNames) ? kNames[tier] : absl::StrCat("tier-", tier + 1);
}

// What the names begin with, without what only joins it to the rest: "su0-rail0" and "su0-rail1"
// are "su0-rail".
std::string Common(const std::vector<std::string>& names) {
  std::string common = names[0];
  for (const std::string& name : names) {
    size_t same = 0;
    while (same < common.size() && same < name.size() && common[same] == name[same]) ++same;
    common.resize(same);
  }
  while (!common.empty() && !absl::ascii_isalnum(static_cast<unsigned char>(common.back()))) {
    common.pop_back();
  }
  return common;
}

class Placer {
 public:
  Placer(const Network& network, std::vector<NodeRails>& nodes, std::vector<Finding>& findings)
      : network_(network), nodes_(nodes), findings_(findings) {}

  CabledPlaces Place() {
    std::vector<SwitchOfRail> cables;
    cables.reserve(nodes_.size());
    std::vector<bool> certain;
    for (const NodeRails& node : nodes_) {
      cables.push_back(SwitchesOf(node));
      certain.push_back(node.certain);
    }
    groups_ = GroupByLeaves(cables, certain);
    placed_.paths.resize(nodes_.size());
    if (groups_.switches.empty()) return std::move(placed_);
    const Tiers tiers = FindTiers(LeafSwitches(), static_cast<int>(network_.switches.size()),
                                  network_.switch_links);
    TellSideways(tiers);
    Name(tiers);
    for (const SwitchOfRail& group : groups_.switches) {
      std::set<int> at(group.begin(), group.end());
      at.erase(-1);
      placed_.rail_optimized = placed_.rail_optimized || at.size() > 1;
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].certain) {
        CheckCables(i);
      } else {
        SeatBySwitch(i);
      }
    }
    TellSplit();
    return std::move(placed_);
  }

 private:
  // Of each leaf its switches: those of its rails, and those where second cables of most of its
  // nodes are. They are no spines, though they are joined with others. A switch for the second
  // cables of several leaves (another plane, storage) is not a part of any: it would join them.
  std::vector<SwitchOfRail> LeafSwitches() const {
    std::vector<std::map<int, size_t>> also(groups_.switches.size());
    std::vector<size_t> nodes(also.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (groups_.group_of_node[i] < 0) continue;
      const auto group = static_cast<size_t>(groups_.group_of_node[i]);
      ++nodes[group];
      std::set<int> here;
      for (const RailNic& rail : nodes_[i].rails) here.insert(rail.also.begin(), rail.also.end());
      for (const int at : here) ++also[group][at];
    }
    std::map<int, std::vector<size_t>> leaves_of;
    for (size_t group = 0; group < also.size(); ++group) {
      for (const auto& [at, count] : also[group]) {
        if (count * 2 > nodes[group]) leaves_of[at].push_back(group);
      }
    }
    std::vector<SwitchOfRail> leaves = groups_.switches;
    for (const auto& [at, of] : leaves_of) {
      if (of.size() == 1) leaves[of[0]].push_back(at);
    }
    return leaves;
  }

  std::string SwitchName(int at) const {
    return at < 0 ? "" : network_.switches[static_cast<size_t>(at)];
  }

  void Name(const Tiers& tiers) {
    const size_t count = tiers.domains.size();
    placed_.switches.resize(count);
    std::vector<std::vector<std::string>> paths(groups_.switches.size());
    std::set<std::string> taken;
    for (size_t level = 0; level < count; ++level) {
      const size_t tier = count - 1 - level;
      placed_.levels.push_back(LevelName(tier));
      const std::vector<Tiers::Domain>& domains = tiers.domains[tier];
      std::map<std::string, int> common;
      std::vector<std::vector<std::string>> names(domains.size());
      for (size_t d = 0; d < domains.size(); ++d) {
        for (const int at : domains[d].switches) names[d].push_back(SwitchName(at));
        if (!names[d].empty()) ++common[Common(names[d])];
      }
      for (size_t d = 0; d < domains.size(); ++d) {
        std::string name;
        if (names[d].empty()) {  // nothing was seen above these leaves
          const SwitchOfRail& leaf = groups_.switches[static_cast<size_t>(domains[d].groups[0])];
          name = absl::StrCat("no-", LevelName(tier), "-",
                              SwitchName(*std::max_element(leaf.begin(), leaf.end())));
        } else {
          name = Common(names[d]);
          if (name.empty() || common[name] > 1) name = names[d][0];
        }
        if (taken.count(name) > 0) name = absl::StrCat(name, "-", LevelName(tier), d);
        name = FreeName(name, taken);
        if (tier == 0) {
          names[d].clear();
          for (const int at : groups_.switches[static_cast<size_t>(domains[d].groups[0])]) {
            names[d].push_back(SwitchName(at));
          }
        }
        placed_.switches[level][name] = names[d];
        for (const int group : domains[d].groups) paths[static_cast<size_t>(group)].push_back(name);
      }
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int group = groups_.group_of_node[i];
      if (group >= 0) placed_.paths[i] = paths[static_cast<size_t>(group)];
    }
  }

  // The NICs of a node whose rails are not certain are the rails that its leaf has at their
  // switches, and those at other switches are what remains.
  void SeatBySwitch(size_t i) {
    std::vector<RailNic>& rails = nodes_[i].rails;
    if (groups_.group_of_node[i] < 0) return;
    const SwitchOfRail& right = groups_.switches[static_cast<size_t>(groups_.group_of_node[i])];
    std::vector<RailNic> seated(rails.size());
    for (const bool fitting : {true, false}) {
      for (RailNic& nic : rails) {
        for (size_t r = 0; nic.there() && r < seated.size(); ++r) {
          if (seated[r].there() || (fitting && right[r] != nic.cable.at)) continue;
          seated[r] = std::exchange(nic, {});
        }
      }
    }
    rails = std::move(seated);
  }

  void CheckCables(size_t i) {
    NodeRails& node = nodes_[i];
    const int group = groups_.group_of_node[i];
    if (group < 0) return;
    const SwitchOfRail& right = groups_.switches[static_cast<size_t>(group)];
    std::vector<std::string> unseen;
    size_t cabled = 0;
    for (size_t r = 0; r < node.rails.size(); ++r) {
      RailNic& rail = node.rails[r];
      if (rail.cable.at >= 0) ++cabled;
      if (rail.there() && rail.cable.at < 0 && !rail.dead && right[r] >= 0) {
        unseen.push_back(absl::StrCat(r, " (", rail.nic, ")"));
      }
      const bool also = std::count(rail.also.begin(), rail.also.end(), right[r]) > 0;
      if (rail.cable.at < 0 || rail.cable.at == right[r] || also) continue;
      const bool split = groups_.split[static_cast<size_t>(group)].count(static_cast<int>(r)) > 0;
      if (split) continue;
      rail.miswired = true;
      TellMiswired(node.node, rail, static_cast<int>(r), right, group);
    }
    // Where hardly any cable of a node was seen, nobody looked.
    if (unseen.empty() || cabled < unseen.size()) return;
    findings_.push_back(
        {FindingKind::kContradiction, true, node.node,
         absl::StrCat(
             "rail ", absl::StrJoin(unseen, ", "), " of ", node.node,
             " is up as its node agent says, but no cable on it was seen; the agent is "
             "believed: does the switch speak LLDP there, and is the subnet's list new?")});
  }

  // Where as many nodes of a leaf say this as that, no cable can be called wrong.
  void TellSplit() {
    std::map<std::pair<size_t, int>, std::map<int, std::vector<std::string>>> nodes_at;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (groups_.group_of_node[i] < 0 || !nodes_[i].certain) continue;
      const auto group = static_cast<size_t>(groups_.group_of_node[i]);
      for (const int r : groups_.split[group]) {
        const int at = nodes_[i].rails[static_cast<size_t>(r)].cable.at;
        if (at >= 0) nodes_at[{group, r}][at].push_back(nodes_[i].node);
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
          {FindingKind::kContradiction, true, "",
           absl::StrCat("nodes of one leaf have rail ", where.second,
                        " at several switches, and "
                        "none has most of them: ",
                        absl::StrJoin(sides, ", "),
                        "; the evidence is split, so no cable is called wrong: compare them with "
                        "the plan")});
    }
  }

  void TellMiswired(const std::string& node, const RailNic& rail, int number,
                    const SwitchOfRail& right, int group) {
    const std::string nic = absl::StrCat(rail.nic, " (rail ", number, ") of ", node, " is at ",
                                         SwitchName(rail.cable.at), " port ", rail.cable.port);
    const std::string there =
        absl::StrCat("most nodes of its leaf have rail ", number, " at ",
                     SwitchName(right[static_cast<size_t>(number)]), ": move the cable");
    const auto other = std::find(right.begin(), right.end(), rail.cable.at);
    if (other != right.end()) {
      findings_.push_back({FindingKind::kMiswired, true, node,
                           absl::StrCat(nic, ", where other nodes have rail ",
                                        other - right.begin(), "; ", there)});
      return;
    }
    for (size_t g = 0; g < groups_.switches.size(); ++g) {
      const SwitchOfRail& leaf = groups_.switches[g];
      if (static_cast<int>(g) == group ||
          std::find(leaf.begin(), leaf.end(), rail.cable.at) == leaf.end()) {
        continue;
      }
      findings_.push_back({FindingKind::kTwoLeaves, true, node,
                           absl::StrCat(nic,
                                        ", a switch of another leaf, so the node is in two "
                                        "leaves; ",
                                        there)});
      return;
    }
    findings_.push_back({FindingKind::kMiswired, true, node,
                         absl::StrCat(nic, ", which is no leaf switch; ", there)});
  }

  void TellSideways(const Tiers& tiers) {
    if (tiers.sideways.empty()) return;
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(tiers.sideways.size(), kMaxNamed); ++i) {
      const auto& [a, b] = tiers.sideways[i];
      names.push_back(absl::StrCat(SwitchName(a), " and ", SwitchName(b)));
    }
    if (tiers.sideways.size() > kMaxNamed) {
      names.push_back(absl::StrCat(tiers.sideways.size() - kMaxNamed, " more pairs"));
    }
    findings_.push_back({FindingKind::kCycle, false, "",
                         absl::StrCat("cables join switches of one tier, which no tree has: ",
                                      absl::StrJoin(names, ", "),
                                      "; they are left out. A dragonfly is not "
                                      "recognized: write its FabricModel by hand")});
  }

  const Network& network_;
  std::vector<NodeRails>& nodes_;
  std::vector<Finding>& findings_;
  LeafGroups groups_;
  CabledPlaces placed_;
};

}  // namespace

CabledPlaces PlacesByCables(const Network& network, std::vector<NodeRails>& nodes,
                            std::vector<Finding>& findings) {
  return Placer(network, nodes, findings).Place();
}

}  // namespace railhead::fabric
