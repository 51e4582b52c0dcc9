// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/outsiders.h"

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
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {
namespace {

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

struct Outsiders {
  std::set<size_t> rails;
  std::set<int> networks;  // where they are
  bool split = false;      // some rails share a network, but most do not
};

Outsiders FindOutsiders(const Rows& rows, const std::vector<int>& network_of) {
  const size_t rails = rows.empty() ? 0 : rows[0]->rails.size();
  std::vector<std::set<int>> networks(rails);
  for (size_t rail = 0; rail < rails; ++rail) {
    std::map<int, size_t> count;
    for (const NodeRails* row : rows) {
      const int at = row->certain ? row->rails[rail].cable.at : -1;
      if (at >= 0) ++count[network_of[static_cast<size_t>(at)]];
    }
    size_t most = 0;
    for (const auto& [which, nics] : count) most = std::max(most, nics);
    // A leaf without a spine is a network of its own, and there may be many; a cable that hangs
    // wrong is alone.
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
  if (sizes.size() < 2 || largest->second < 2) return found;
  found.split = largest->second * 2 <= all;
  for (size_t rail = 0; rail < rails && !found.split; ++rail) {
    if (!networks[rail].empty() && kind[rail] != largest->first) {
      found.rails.insert(rail);
      found.networks.insert(networks[rail].begin(), networks[rail].end());
    }
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

void TellSplit(const Rows& rows, std::vector<Finding>& findings) {
  findings.push_back(
      {FindingKind::kStorage, false, "",
       absl::StrCat("the NICs of ", rows.size(),
                    " nodes are in several networks, and none has more ", "than half of their ",
                    rows[0]->rails.size(), " rails: the evidence is split ",
                    "on which are storage's, so all are taken for rails; if some are not, give ",
                    "them a resource of their own in the node agents' configuration")});
}

}  // namespace

void LeaveOutsidersOut(const Network& network, const Rows& rows, std::vector<Finding>& findings) {
  const std::vector<int> network_of = Networks(network);
  const Outsiders outsiders = FindOutsiders(rows, network_of);
  if (outsiders.split) TellSplit(rows, findings);
  for (auto rail = outsiders.rails.rbegin(); rail != outsiders.rails.rend(); ++rail) {
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
      if (!row->certain) continue;
      row->rails.erase(row->rails.begin() + static_cast<std::ptrdiff_t>(*rail));
    }
  }
  // What is at no known position is known by where it is.
  for (NodeRails* row : rows) {
    if (row->certain) continue;
    std::erase_if(row->rails, [&](const RailNic& nic) {
      return !nic.there() ||
             outsiders.networks.count(network_of[static_cast<size_t>(nic.cable.at)]) > 0;
    });
  }
}

void TellOutsiders(const Network& network, const Rows& rows, std::vector<Finding>& findings) {
  const Outsiders outsiders = FindOutsiders(rows, Networks(network));
  if (outsiders.split) TellSplit(rows, findings);
  const size_t rails = rows.empty() ? 0 : rows[0]->rails.size();
  std::vector<double> usual(rails);
  for (size_t rail = 0; rail < rails; ++rail) usual[rail] = UsualGbps(rows, rail);
  std::vector<double> sorted = usual;
  std::sort(sorted.begin(), sorted.end());
  const double middle = sorted.empty() ? 0 : sorted[sorted.size() / 2];
  for (size_t rail = 0; rail < rails; ++rail) {
    std::vector<std::string> why;
    if (outsiders.rails.count(rail) > 0) {
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

}  // namespace railhead::fabric
