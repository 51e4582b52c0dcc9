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
#include "fabric/discovery/nic_wiring.h"
#include "fabric/discovery/node_rails.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/rail_cables.h"
#include "fabric/natural_order.h"

namespace railhead::fabric {
namespace {

// Returns the facts that are the same on all machines of a kind.
std::vector<SeenRail> OfKind(absl::Span<const SeenRail> facts) {
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

std::vector<RailNic> FromFacts(absl::Span<const SeenRail> facts, const Nics& nics) {
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
  // "n0 HCA-1": the node descriptions use other names. An equal number of NICs means the same NICs.
  // Interface names come from the kernel in both sources, so a NIC with another name in LLDP is
  // another NIC.
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

ToldKinds::ToldKinds(const std::vector<int>& network_of)
    : by_network_(&network_of), network_of_(network_of) {}

void ToldKinds::Add(absl::Span<const SeenRail> facts, const Nics& nics) {
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
    kind.networks = NicWiring(&network_of_);
  }
  ++kind.nodes;
  kind.switches.Add(nics);
  kind.networks.Add(nics);
  for (const auto& [name, cable] : nics) {
    if (kind.rail_of.count(HcaOf(name)) == 0) kind.others.insert(name);
  }
}

std::vector<std::string> ToldKinds::NamesOf(const Nics& nics) {
  std::vector<std::string> names;
  for (const auto& [name, cable] : nics) names.push_back(name);
  return names;
}

ToldKinds::Places ToldKinds::PlacesOf(const NicWiring& wiring, const Nics& nics) {
  Places places;
  for (const auto& [name, cable] : nics) places.emplace_back(name, wiring.PlaceOf(cable));
  return places;
}

void ToldKinds::AddSilent(const Nics& nics) {
  ++silent_at_switches_[PlacesOf(by_switch_, nics)];
  ++silent_in_networks_[PlacesOf(by_network_, nics)];
  ++silent_with_[NamesOf(nics)];
}

bool ToldKinds::Contradicts(const Kind& kind, const Nics& nics) const {
  const auto contradicts = [&nics](const NicWiring& wiring) {
    return std::any_of(nics.begin(), nics.end(), [&wiring](const auto& nic) {
      return !wiring.Has(nic.first, nic.second).value_or(true);
    });
  };
  // If only one machine has facts, it may be the one in its leaf with swapped cables.
  return (kind.nodes > 1 && silent_at_switches_.at(PlacesOf(by_switch_, nics)) > 1 &&
          contradicts(kind.switches)) ||
         (silent_in_networks_.at(PlacesOf(by_network_, nics)) > 1 && contradicts(kind.networks));
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
    if (!all || known == 0 || Contradicts(kind, nics)) continue;
    std::vector<RailNic> rails = FromFacts(kind.rails, nics);
    const auto unseen = [](const RailNic& rail) { return rail.there() && rail.cable.at < 0; };
    const auto missing = static_cast<size_t>(std::count_if(rails.begin(), rails.end(), unseen));
    for (RailNic& rail : rails) {
      rail.gbps = rail.cable.gbps;
      if (!unseen(rail)) continue;
      if (missing * 2 >= kind.rails.size() || silent_with_.at(NamesOf(nics)) > kind.nodes) {
        rail = {};
      } else {
        rail.dead = true;
        rail.reason = "no source shows a cable on it";
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
