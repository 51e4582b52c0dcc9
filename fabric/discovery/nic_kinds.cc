// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/nic_kinds.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fabric/discovery/network.h"
#include "fabric/discovery/nic_wiring.h"

namespace railhead::fabric {
namespace {

// Clusters have a few kinds of machines; whatever has more is not looked through pair by pair.
constexpr size_t kMaxKinds = 64;

struct Seen {
  NicKind names;
  std::vector<const Nics*> nodes;
  bool overlaps = false;  // with another one that has what it lacks
};

bool Holds(const NicKind& all, const NicKind& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end(), NaturalOrder());
}

bool Shares(const NicKind& a, const NicKind& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) {
    return std::binary_search(b.begin(), b.end(), name, NaturalOrder());
  });
}

NicKind NamesOf(const Nics& nics) {
  NicKind names;
  for (const auto& [name, cable] : nics) names.push_back(name);
  return names;
}

// Whether a NIC of most of these nodes is where the kind has others.
bool Contradicts(const NicWiring& kind, const Seen& nodes) {
  std::map<std::string, std::ptrdiff_t> surplus;  // contradicting nodes minus the others
  for (const Nics* nics : nodes.nodes) {
    for (const auto& [name, cable] : *nics) {
      if (const auto same = kind.Has(name, cable)) surplus[name] += *same ? -1 : 1;
    }
  }
  return std::any_of(surplus.begin(), surplus.end(),
                     [](const auto& name) { return name.second > 1; });
}

bool LacksHalf(const Seen& kind, const Seen& nodes) {
  const size_t lacking = kind.names.size() - nodes.names.size();
  return lacking > 1 && lacking * 2 >= kind.names.size();
}

struct Kind {
  Seen seen;
  NicWiring switches;
  NicWiring networks;

  // Whether nodes that have none but its NICs are of this kind, and lack the others.
  bool HasBroken(const Seen& nodes) const {
    if (!Holds(seen.names, nodes.names)) return false;
    if (nodes.nodes.size() == 1) return true;
    return !LacksHalf(seen, nodes) && !Contradicts(switches, nodes) &&
           !Contradicts(networks, nodes);
  }
};

}  // namespace

NicKinds::NicKinds(const std::vector<const Nics*>& nodes, const std::vector<int>& network_of) {
  std::map<NicKind, std::vector<const Nics*>> alike;
  for (const Nics* nics : nodes) alike[NamesOf(*nics)].push_back(nics);
  std::vector<Seen> sets;
  for (auto& [names, members] : alike) {
    sets.push_back({names, std::move(members)});
    rails_ = std::max(rails_, names.size());
  }
  std::stable_sort(sets.begin(), sets.end(), [](const Seen& a, const Seen& b) {
    return a.names.size() != b.names.size() ? a.names.size() > b.names.size()
                                            : a.nodes.size() > b.nodes.size();
  });
  std::vector<Kind> whole;  // those that are no broken ones of another
  for (Seen& set : sets) {
    if (whole.size() == kMaxKinds) break;
    const bool held = std::any_of(whole.begin(), whole.end(),
                                  [&](const Kind& kind) { return kind.HasBroken(set); });
    if (held) continue;
    for (Kind& other : whole) {
      if (!Shares(other.seen.names, set.names) || Holds(other.seen.names, set.names)) continue;
      other.seen.overlaps = true;
      set.overlaps = true;
    }
    NicWiring switches(nullptr);
    NicWiring networks(&network_of);
    for (const Nics* nics : set.nodes) {
      switches.Add(*nics);
      networks.Add(*nics);
    }
    whole.push_back({std::move(set), std::move(switches), std::move(networks)});
  }
  for (Kind& kind : whole) {
    Seen& set = kind.seen;
    const bool full = set.names.size() == rails_ && !set.overlaps;
    if (set.nodes.size() > 1 || full) kinds_.push_back(std::move(set.names));
  }
}

const NicKind* NicKinds::Find(const Nics& nics) const {
  const NicKind names = NamesOf(nics);
  const auto rails_in = [&](const NicKind& kind) {
    std::vector<std::ptrdiff_t> rails;
    for (const std::string& name : names) {
      const auto at = std::lower_bound(kind.begin(), kind.end(), name, NaturalOrder());
      rails.push_back(at - kind.begin());
    }
    return rails;
  };
  const auto same = std::find(kinds_.begin(), kinds_.end(), names);
  if (same != kinds_.end()) return &*same;
  const NicKind* found = nullptr;
  for (const NicKind& kind : kinds_) {
    if (!Holds(kind, names)) continue;
    if (found != nullptr && rails_in(*found) != rails_in(kind)) return nullptr;
    if (found == nullptr || kind.size() < found->size()) found = &kind;
  }
  return found;
}

}  // namespace railhead::fabric
