// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/cabled_places.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/finding.h"
#include "fabric/discovery/cable_check.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/free_name.h"
#include "fabric/discovery/leaf_groups.h"
#include "fabric/discovery/leaf_rails.h"
#include "fabric/discovery/listed.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/tiers.h"

namespace railhead::fabric {
namespace {

constexpr size_t kMaxNamed = 4;

std::string LevelName(size_t tier) {
  constexpr const char* kNames[] = {"leaf", "spine", "core"};
  return tier < std::size(kNames) ? kNames[tier] : absl::StrCat("tier-", tier + 1);
}

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// Returns the common prefix of the names, without a partial number and its separator: "su0-leaf10"
// and "su0-leaf11" are "su0-leaf".
std::string Common(const std::vector<std::string>& names) {
  std::string common = names[0];
  bool in_number = false;
  for (const std::string& name : names) {
    size_t same = 0;
    while (same < common.size() && same < name.size() && common[same] == name[same]) ++same;
    in_number = in_number || (same < names[0].size() && IsDigit(names[0][same])) ||
                (same < name.size() && IsDigit(name[same]));
    common.resize(same);
  }
  while (in_number && !common.empty() && IsDigit(common.back())) common.pop_back();
  while (!common.empty() && !absl::ascii_isalnum(static_cast<unsigned char>(common.back()))) {
    common.pop_back();
  }
  return common;
}

// If a node's rails are uncertain, each NIC gets the rail that its leaf has at the NIC's switch;
// NICs at other switches get the remaining rails.
void SeatBySwitch(const SwitchOfRail& right, std::vector<RailNic>& rails) {
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

class Placer {
 public:
  Placer(const Network& network, std::vector<NodeRails>& nodes, std::vector<Finding>& findings)
      : network_(network), nodes_(nodes), findings_(findings) {}

  CabledPlaces Place() {
    std::vector<NodeCables> cables;
    cables.reserve(nodes_.size());
    for (const NodeRails& node : nodes_) cables.push_back(CablesOf(node));
    groups_ = GroupByLeaves(cables);
    placed_.paths.resize(nodes_.size());
    if (groups_.count == 0) return std::move(placed_);
    LeafRails rails(cables, groups_);
    std::vector<SwitchOfRail> leaves = LeafSwitches(rails);
    if (LeaveHostsAboveOut(leaves)) {
      rails = LeafRails(cables, groups_);
      leaves = LeafSwitches(rails);
    }
    const Tiers tiers =
        FindTiers(leaves, static_cast<int>(network_.switches.size()), network_.switch_links);
    TellSideways(tiers);
    Name(tiers, rails.shown());
    for (const SwitchOfRail& group : rails.shown()) {
      std::set<int> at(group.begin(), group.end());
      at.erase(-1);
      placed_.rail_optimized = placed_.rail_optimized || at.size() > 1;
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].certain && groups_.group_of_node[i] >= 0) {
        SeatBySwitch(rails.shown()[static_cast<size_t>(groups_.group_of_node[i])], nodes_[i].rails);
      }
    }
    CheckCables(network_, groups_, rails, leaves, nodes_, findings_);
    return std::move(placed_);
  }

 private:
  // Removes groups of hosts at switches above the leaves; returns whether there are any.
  bool LeaveHostsAboveOut(const std::vector<SwitchOfRail>& leaves) {
    std::vector<GroupNodes> of_group(leaves.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (groups_.group_of_node[i] < 0) continue;
      GroupNodes& group = of_group[static_cast<size_t>(groups_.group_of_node[i])];
      const SeenNode* node = nodes_[i].kubernetes;
      ++group.count;
      group.compute = group.compute || nodes_[i].facts ||
                      (node != nullptr && (node->gpus > 0 || node->hcas > 0));
    }
    const std::vector<bool> above = GroupsAbove(
        leaves, of_group, static_cast<int>(network_.switches.size()), network_.switch_links);
    std::vector<int> number(leaves.size(), -1);
    std::set<int> switches;
    groups_.count = 0;
    for (size_t group = 0; group < leaves.size(); ++group) {
      if (above[group]) {
        switches.insert(leaves[group].begin(), leaves[group].end());
      } else {
        number[group] = groups_.count++;
      }
    }
    std::vector<std::string> hosts;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      int& group = groups_.group_of_node[i];
      if (group < 0) continue;
      if (above[static_cast<size_t>(group)]) hosts.push_back(nodes_[i].node);
      group = number[static_cast<size_t>(group)];
    }
    if (hosts.empty()) return false;
    std::vector<std::string> names;
    names.reserve(switches.size());
    for (const int at : switches) names.push_back(SwitchName(at));
    findings_.push_back({Severity::kNote, kNoPlace, Listed(hosts),
                         absl::StrCat("at ", Listed(names),
                                      ", above the leaves of other nodes; ignored, so no job is "
                                      "placed there"),
                         "nothing to do for hosts without GPUs; connect others to a leaf"});
    return true;
  }

  // Returns the switches of each leaf: those of its rails, and those with second cables of most of
  // its nodes. They are not spines, although cables connect them to other switches. A switch for
  // the second cables of several leaves (another plane, storage) belongs to none, as it would join
  // them.
  std::vector<SwitchOfRail> LeafSwitches(const LeafRails& rails) const {
    std::vector<std::map<int, size_t>> also(static_cast<size_t>(groups_.count));
    std::vector<size_t> nodes(also.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (groups_.group_of_node[i] < 0) continue;
      const auto group = static_cast<size_t>(groups_.group_of_node[i]);
      ++nodes[group];
      std::set<int> here;
      for (const RailNic& rail : nodes_[i].rails) {
        here.insert(rail.also.begin(), rail.also.end());
        for (const SlaveCable& slave : rail.slaves) here.insert(slave.cable.at);
      }
      for (const int at : here) ++also[group][at];
    }
    std::map<int, std::vector<size_t>> leaves_of;
    for (size_t group = 0; group < also.size(); ++group) {
      for (const auto& [at, count] : also[group]) {
        if (count * 2 > nodes[group]) leaves_of[at].push_back(group);
      }
    }
    std::vector<SwitchOfRail> leaves;
    for (int group = 0; group < groups_.count; ++group) {
      const std::set<int>& own = rails.Switches(group);
      leaves.emplace_back(own.begin(), own.end());
    }
    for (const auto& [at, of] : leaves_of) {
      if (of.size() == 1 && rails.Switches(static_cast<int>(of[0])).count(at) == 0) {
        leaves[of[0]].push_back(at);
      }
    }
    return leaves;
  }

  std::string SwitchName(int at) const {
    return at < 0 ? "" : network_.switches[static_cast<size_t>(at)];
  }

  // Returns the names of the domains of each tier, leaves first. A name depends on the domain's
  // switches and on the names already in use.
  std::vector<std::vector<std::string>> NamesOf(const Tiers& tiers) const {
    const std::set<std::string> switches(network_.switches.begin(), network_.switches.end());
    std::set<std::string> taken;
    std::vector<std::vector<std::string>> names;
    std::vector<std::string> below;  // the name around each leaf, of the tier before
    for (size_t tier = 0; tier < tiers.domains.size(); ++tier) {
      const std::vector<Tiers::Domain>& domains = tiers.domains[tier];
      std::vector<size_t> order(domains.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return domains[a].switches < domains[b].switches;
      });
      names.emplace_back(domains.size());
      for (const size_t d : order) {
        const Tiers::Domain& domain = domains[d];
        std::string name;
        if (domain.switches.empty()) {  // nothing was seen above these
          name = absl::StrCat("no-", LevelName(tier), "-",
                              below[static_cast<size_t>(domain.groups[0])]);
        } else {
          name = SwitchName(domain.switches[0]);
        }
        if (tier == 0 && domain.switches.size() > 1) {
          std::vector<std::string> own;
          own.reserve(domain.switches.size());
          for (const int at : domain.switches) own.push_back(SwitchName(at));
          const std::string common = Common(own);
          const bool tells = std::any_of(common.begin(), common.end(), IsDigit);
          if (tells && taken.count(common) == 0 && switches.count(common) == 0) name = common;
        }
        names[tier][d] = FreeName(name, taken);
      }
      below.resize(static_cast<size_t>(groups_.count));
      for (size_t d = 0; d < domains.size(); ++d) {
        for (const int group : domains[d].groups) {
          below[static_cast<size_t>(group)] = names[tier][d];
        }
      }
    }
    return names;
  }

  void Name(const Tiers& tiers, const std::vector<SwitchOfRail>& shown) {
    const size_t count = tiers.domains.size();
    const std::vector<std::vector<std::string>> names = NamesOf(tiers);
    placed_.switches.resize(count);
    std::vector<std::vector<std::string>> paths(shown.size());
    for (size_t level = 0; level < count; ++level) {
      const size_t tier = count - 1 - level;
      placed_.levels.push_back(LevelName(tier));
      for (size_t d = 0; d < tiers.domains[tier].size(); ++d) {
        const Tiers::Domain& domain = tiers.domains[tier][d];
        std::vector<std::string>& switches = placed_.switches[level][names[tier][d]];
        const std::vector<int>& at =
            tier == 0 ? shown[static_cast<size_t>(domain.groups[0])] : domain.switches;
        for (const int which : at) switches.push_back(SwitchName(which));
        for (const int group : domain.groups) {
          paths[static_cast<size_t>(group)].push_back(names[tier][d]);
        }
      }
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int group = groups_.group_of_node[i];
      if (group >= 0) placed_.paths[i] = paths[static_cast<size_t>(group)];
    }
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
    findings_.push_back(
        {Severity::kNote, kCycle, absl::StrJoin(names, ", "),
         "cables connect these switches of one tier, which a tree cannot contain; they are ignored",
         "nothing to do for a tree; a dragonfly is not recognized: write its FabricModel by hand"});
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
