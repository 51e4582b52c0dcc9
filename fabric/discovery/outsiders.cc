// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/outsiders.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {
namespace {

// Limit for one kind of node; if there are more, they are treated as one.
constexpr size_t kMaxWirings = 64;

// Nodes of one kind with the same wiring.
struct Alike {
  Rows rows;
  std::vector<int> networks;  // of each rail of the first such node; -1: unknown
};

std::vector<int> NetworksOfRails(const NodeRails& row, const std::vector<int>& network_of) {
  std::vector<int> networks;
  for (const RailNic& rail : row.rails) {
    const int at = rail.cable.at;
    networks.push_back(at < 0 ? -1 : network_of[static_cast<size_t>(at)]);
  }
  return networks;
}

// Returns whether the same rails share a network. Its index is not compared: without a spine, each
// leaf is a separate network.
bool WiredAlike(const std::vector<int>& a, const std::vector<int>& b) {
  std::map<int, int> in_b;
  std::map<int, int> in_a;
  for (size_t r = 0; r < a.size() && r < b.size(); ++r) {
    if (a[r] < 0 || b[r] < 0) continue;
    if (in_b.emplace(a[r], b[r]).first->second != b[r]) return false;
    if (in_a.emplace(b[r], a[r]).first->second != a[r]) return false;
  }
  return true;
}

// A wrong wiring of one node, or of a few of many, does not form a group: these nodes join the
// largest group.
std::vector<Alike> GroupAlike(const Rows& rows, const std::vector<int>& network_of) {
  std::map<int, std::map<std::vector<int>, Rows>> of_kind;  // by networks
  for (NodeRails* row : rows) {
    if (row->kind >= 0) of_kind[row->kind][NetworksOfRails(*row, network_of)].push_back(row);
  }
  std::vector<Alike> found;
  for (auto& [kind, wirings] : of_kind) {
    std::vector<Alike> groups;
    for (const auto& [networks, members] : wirings) groups.push_back({members, networks});
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Alike& a, const Alike& b) { return a.rows.size() > b.rows.size(); });
    std::vector<Alike> merged;
    std::vector<Alike> few;
    for (Alike& group : groups) {
      const auto like = std::find_if(merged.begin(), merged.end(), [&](const Alike& other) {
        return WiredAlike(other.networks, group.networks);
      });
      if (like != merged.end()) {
        like->rows.insert(like->rows.end(), group.rows.begin(), group.rows.end());
      } else if (merged.size() < kMaxWirings) {
        merged.push_back(std::move(group));
      } else {
        few.push_back(std::move(group));
      }
    }
    size_t most = 0;
    for (const Alike& group : merged) most = std::max(most, group.rows.size());
    const auto large = std::stable_partition(merged.begin(), merged.end(), [&](const Alike& group) {
      return group.rows.size() == most || (group.rows.size() > 1 && group.rows.size() * 4 > most);
    });
    few.insert(few.end(), std::make_move_iterator(large), std::make_move_iterator(merged.end()));
    merged.erase(large, merged.end());
    for (const Alike& group : few) {
      merged[0].rows.insert(merged[0].rows.end(), group.rows.begin(), group.rows.end());
    }
    found.insert(found.end(), std::make_move_iterator(merged.begin()),
                 std::make_move_iterator(merged.end()));
  }
  return found;
}

struct Outsiders {
  std::set<size_t> rails;
  std::set<int> networks;  // where they are
  std::set<int> others;    // where the other rails are
  bool split = false;      // some rails share a network, but most do not
};

Outsiders FindOutsiders(const Rows& rows, const std::vector<int>& network_of) {
  const size_t rails = rows[0]->rails.size();
  std::vector<std::set<int>> networks(rails);
  for (size_t rail = 0; rail < rails; ++rail) {
    std::map<int, size_t> count;
    for (const NodeRails* row : rows) {
      const int at = row->rails[rail].cable.at;
      if (at >= 0) ++count[network_of[static_cast<size_t>(at)]];
    }
    size_t most = 0;
    for (const auto& [which, nics] : count) most = std::max(most, nics);
    // A leaf without a spine is a separate network, and there may be many of these; a wrong cable
    // is single.
    for (const auto& [which, nics] : count) {
      if (nics * 4 > most) networks[rail].insert(which);
    }
  }
  // Rails that share a network are of one kind.
  std::vector<size_t> kind(rails);
  for (size_t a = 0; a < rails; ++a) {
    kind[a] = a;
    for (size_t b = 0; b < a; ++b) {
      const bool shared = std::any_of(networks[a].begin(), networks[a].end(),
                                      [&](int which) { return networks[b].count(which) > 0; });
      if (!shared) continue;
      const size_t from = kind[a];
      std::replace(kind.begin(), kind.begin() + static_cast<std::ptrdiff_t>(a) + 1, from, kind[b]);
    }
  }
  std::map<size_t, size_t> sizes;
  size_t all = 0;
  for (size_t rail = 0; rail < rails; ++rail) {
    if (networks[rail].empty()) continue;
    ++sizes[kind[rail]];
    ++all;
  }
  Outsiders found;
  const auto largest = std::max_element(
      sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (sizes.size() < 2 || largest->second < 2) {
    for (const std::set<int>& of_rail : networks) {
      found.others.insert(of_rail.begin(), of_rail.end());
    }
    return found;
  }
  found.split = largest->second * 2 <= all;
  for (size_t rail = 0; rail < rails && !found.split; ++rail) {
    if (!networks[rail].empty() && kind[rail] != largest->first) {
      found.rails.insert(rail);
      found.networks.insert(networks[rail].begin(), networks[rail].end());
    }
  }
  for (size_t rail = 0; rail < rails; ++rail) {
    if (found.rails.count(rail) > 0) continue;
    found.others.insert(networks[rail].begin(), networks[rail].end());
  }
  return found;
}

std::string ShownSwitches(const Rows& rows, size_t rail, const Network& network) {
  std::set<int> at;
  for (const NodeRails* row : rows) {
    if (row->rails[rail].cable.at >= 0) at.insert(row->rails[rail].cable.at);
  }
  const std::string first = network.switches[static_cast<size_t>(*at.begin())];
  return at.size() == 1 ? first : absl::StrCat(first, " and ", at.size() - 1, " more");
}

// Returns the most common rate of the NICs of a rail.
double UsualGbps(const Rows& rows, size_t rail) {
  std::map<double, size_t> count;
  for (const NodeRails* row : rows) {
    if (row->rails[rail].gbps > 0) ++count[row->rails[rail].gbps];
  }
  const auto most = std::max_element(
      count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == count.end() ? 0 : most->first;
}

bool Known(const Rows& rows, size_t rail) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const NodeRails* row) { return row->rails[rail].there(); });
}

std::string NodesOf(const Rows& rows) {
  return rows.size() == 1 ? rows[0]->node
                          : absl::StrCat(rows.size(), " nodes such as ", rows[0]->node);
}

void TellSplit(const Rows& rows, std::vector<Finding>& findings) {
  findings.push_back(
      {Severity::kNote, kStorage, NodesOf(rows),
       absl::StrCat("their NICs are in several networks, and no network has more than half of "
                    "their ",
                    rows[0]->rails.size(),
                    " rails: it is not clear which are for storage, so all are used as rails"),
       "if some are not rails, give them a separate resource in the node agents' configuration"});
}

}  // namespace

void LeaveOutsidersOut(const Network& network, const Rows& rows, std::vector<Finding>& findings) {
  const std::vector<int> network_of = JoinedNetworks(network);
  std::vector<Alike> groups = GroupAlike(rows, network_of);
  const bool several = std::any_of(groups.begin(), groups.end(),
                                   [](const Alike& group) { return group.rows.size() > 1; });
  std::set<int> networks;
  std::set<int> others;
  Rows by_network;
  for (const Alike& group : groups) {
    if (several && group.rows.size() == 1) {
      by_network.push_back(group.rows[0]);
      continue;
    }
    const Outsiders outsiders = FindOutsiders(group.rows, network_of);
    networks.insert(outsiders.networks.begin(), outsiders.networks.end());
    others.insert(outsiders.others.begin(), outsiders.others.end());
    if (outsiders.split) TellSplit(group.rows, findings);
    for (auto rail = outsiders.rails.rbegin(); rail != outsiders.rails.rend(); ++rail) {
      std::string name;
      for (const NodeRails* row : group.rows) {
        if (name.empty()) name = row->rails[*rail].nic;
      }
      findings.push_back({Severity::kNote, kStorage,
                          absl::StrCat(name, " of ", NodesOf(group.rows)),
                          absl::StrCat("at ", ShownSwitches(group.rows, *rail, network),
                                       ", a network without most NICs: treated as the storage or "
                                       "management network, not as a rail"),
                          "if it is a rail, run the node agent, whose facts list the rails"});
      for (NodeRails* row : group.rows) {
        row->rails.erase(row->rails.begin() + static_cast<std::ptrdiff_t>(*rail));
      }
    }
  }
  const auto outside = [&](const RailNic& nic) {
    if (nic.cable.at < 0) return false;
    const int which = network_of[static_cast<size_t>(nic.cable.at)];
    return networks.count(which) > 0 && others.count(which) == 0;
  };
  for (NodeRails* row : by_network) std::erase_if(row->rails, outside);
  for (NodeRails* row : rows) {
    if (row->certain) continue;
    std::erase_if(row->rails, [&](const RailNic& nic) { return !nic.there() || outside(nic); });
  }
}

void TellOutsiders(const Network& network, const Rows& rows, std::vector<Finding>& findings) {
  const std::vector<int> network_of = JoinedNetworks(network);
  const std::vector<Alike> groups = GroupAlike(rows, network_of);
  for (const Alike& group : groups) {
    const Outsiders outsiders = FindOutsiders(group.rows, network_of);
    if (outsiders.split) TellSplit(group.rows, findings);
    const size_t rails = group.rows[0]->rails.size();
    std::vector<double> usual(rails);
    std::vector<double> sorted;
    for (size_t rail = 0; rail < rails; ++rail) {
      usual[rail] = UsualGbps(group.rows, rail);
      if (Known(group.rows, rail)) sorted.push_back(usual[rail]);
    }
    std::sort(sorted.begin(), sorted.end());
    const double middle = sorted.empty() ? 0 : sorted[sorted.size() / 2];
    for (size_t rail = 0; rail < rails; ++rail) {
      std::vector<std::string> why;
      if (outsiders.rails.count(rail) > 0) {
        why.push_back(absl::StrCat("is at ", ShownSwitches(group.rows, rail, network),
                                   ", a network without the other rails"));
      }
      if (usual[rail] > 0 && usual[rail] * 2 <= middle) {
        why.push_back(absl::StrCat("runs at ", usual[rail], " Gbit/s, and the others at ", middle));
      }
      if (why.empty()) continue;
      findings.push_back(
          {Severity::kFail, kStorage,
           absl::StrCat("rail ", rail,
                        groups.size() == 1 ? "" : absl::StrCat(" of ", NodesOf(group.rows))),
           absl::StrCat(absl::StrJoin(why, " and "),
                        "; it is probably a storage NIC, but the node agents offer it for compute"),
           "give it a separate resource in their configuration (resources, selectors)"});
    }
  }
}

}  // namespace railhead::fabric
