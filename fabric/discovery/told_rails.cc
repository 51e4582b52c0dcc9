// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/told_rails.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/rail_cables.h"
#include "fabric/natural_order.h"

namespace railhead::fabric {
namespace {

// What is the same on all machines of a kind.
std::vector<SeenRail> OfKind(const std::vector<SeenRail>& facts) {
  std::vector<SeenRail> rails;
  for (const SeenRail& fact : facts) {
    SeenRail& rail = rails.emplace_back();
    rail.rail = fact.rail;
    rail.device = fact.device;
    rail.netdev = fact.netdev;
    rail.port = fact.port;
    rail.slaves = fact.slaves;
    std::sort(rail.slaves.begin(), rail.slaves.end(), NaturalLess);
  }
  return rails;
}

}  // namespace

std::vector<RailNic> FromFacts(const std::vector<SeenRail>& facts, const Nics& nics) {
  std::vector<RailNic> rails;
  bool matched = false;
  const std::vector<RailNics> nics_of = NicsOfRails(facts, nics);
  for (size_t i = 0; i < facts.size(); ++i) {
    const SeenRail& fact = facts[i];
    rails.resize(std::max(rails.size(), static_cast<size_t>(fact.rail) + 1));
    RailNic& rail = rails[static_cast<size_t>(fact.rail)];
    rail.nic = fact.device;
    rail.gbps = fact.gbps;
    rail.dead = !fact.usable;
    rail.reason = fact.reason;
    for (const std::string& name : nics_of[i].data) {
      if (rail.cable.at < 0) {
        rail.cable = nics.at(name);
        rail.cable_nic = name;
      } else {
        rail.slaves.push_back({name, nics.at(name)});
      }
      matched = true;
    }
    for (const std::string& name : nics_of[i].spare) {
      if (rail.cable.at < 0) {
        rail.cable = nics.at(name);
        rail.cable_nic = name;
      } else {
        rail.also.push_back(nics.at(name).at);
      }
      matched = true;
    }
  }
  // "n0 HCA-1": who set the node descriptions has other names. As many are the same ones. Names of
  // interfaces are the kernel's in both, so what LLDP calls otherwise is another NIC.
  Nics described = nics;
  std::erase_if(described,
                [](const auto& nic) { return nic.second.evidence != Evidence::kInfiniBand; });
  const Nics hcas = OneForEachHca(described);
  if (!matched && hcas.size() == facts.size()) {
    auto nic = hcas.begin();
    for (const SeenRail& fact : facts) {
      rails[static_cast<size_t>(fact.rail)].cable = (nic++)->second;
    }
  }
  return rails;
}

void ToldKinds::Add(const std::vector<SeenRail>& facts, const Nics& nics) {
  std::vector<SeenRail> rails = OfKind(facts);
  std::vector<std::tuple<int, int, std::vector<std::string>>> key;
  for (const SeenRail& rail : rails) {
    std::vector<std::string> names = rail.slaves;
    names.insert(names.begin(), {rail.device, rail.netdev});
    key.emplace_back(rail.rail, rail.port, std::move(names));
  }
  Kind& kind = kinds_[key];
  if (kind.rail_of.empty()) {
    for (const SeenRail& rail : rails) {
      kind.rail_of.emplace(rail.device, rail.rail);
      if (!rail.netdev.empty()) kind.rail_of.emplace(rail.netdev, rail.rail);
      for (const std::string& slave : rail.slaves) kind.rail_of.emplace(slave, rail.rail);
    }
    kind.rails = std::move(rails);
  }
  for (const auto& [name, cable] : nics) {
    if (kind.rail_of.count(HcaOf(name)) == 0) kind.others.insert(name);
  }
}

std::vector<RailNic> ToldKinds::Rails(const Nics& nics) const {
  std::vector<RailNic> found;
  size_t fewest = std::numeric_limits<size_t>::max();
  bool differ = false;
  for (const auto& [key, kind] : kinds_) {
    size_t known = 0;
    bool all = true;
    for (const auto& [name, cable] : nics) {
      const bool rail = kind.rail_of.count(HcaOf(name)) > 0;
      known += rail ? 1 : 0;
      all = all && (rail || kind.others.count(name) > 0);
    }
    if (!all || known == 0) continue;
    std::vector<RailNic> rails = FromFacts(kind.rails, nics);
    const auto unseen = [](const RailNic& rail) { return rail.there() && rail.cable.at < 0; };
    const auto missing = static_cast<size_t>(std::count_if(rails.begin(), rails.end(), unseen));
    for (RailNic& rail : rails) {
      rail.gbps = rail.cable.gbps;
      if (!unseen(rail)) continue;
      if (missing * 2 >= kind.rails.size()) {
        rail = {};
      } else {
        rail.dead = true;
        rail.reason = "nobody has seen a cable on it";
      }
    }
    const auto same = [](const RailNic& a, const RailNic& b) {
      return a.cable.at == b.cable.at && a.cable_nic == b.cable_nic;
    };
    if (missing == fewest) {
      differ = differ || !std::equal(rails.begin(), rails.end(), found.begin(), found.end(), same);
    } else if (missing < fewest) {
      fewest = missing;
      found = std::move(rails);
      differ = false;
    }
  }
  if (differ) found.clear();
  return found;
}

}  // namespace railhead::fabric
