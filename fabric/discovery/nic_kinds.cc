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

// Clusters have a few kinds of machines; pairs are compared only up to this number.
constexpr size_t kMaxKinds = 64;

struct Seen {
  NicKind names;
  std::vector<const Nics*> nodes;
  bool overlaps = false;  // with a set that has a NIC which this one lacks
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

// Returns whether most of these nodes have a NIC where the kind has another one.
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

// Returns whether `smaller` lacks at least half of the names of `larger`.
bool LacksHalf(const NicKind& larger, const NicKind& smaller) {
  const size_t lacking = larger.size() - smaller.size();
  return lacking > 1 && lacking * 2 >= larger.size();
}

// Returns the number of nodes at the kind's switches: most of their NICs are where the kind has
// them.
size_t Beside(const NicWiring& kind, const Seen& nodes) {
  return static_cast<size_t>(
      std::count_if(nodes.nodes.begin(), nodes.nodes.end(), [&](const Nics* nics) {
        const auto same = std::count_if(nics->begin(), nics->end(), [&](const auto& nic) {
          return kind.Has(nic.first, nic.second).value_or(false);
        });
        return static_cast<size_t>(same) * 2 > nics->size();
      }));
}

struct Kind {
  Seen seen;
  NicWiring switches;
  NicWiring networks;

  // Returns whether nodes with a subset of its NICs are of this kind and lack the others.
  bool HasBroken(const Seen& nodes) const {
    if (!Holds(seen.names, nodes.names)) return false;
    if (nodes.nodes.size() == 1) return true;
    if (seen.nodes.size() == 1 || Beside(switches, nodes) > seen.nodes.size()) return false;
    return !LacksHalf(seen.names, nodes.names) && !Contradicts(switches, nodes) &&
           !Contradicts(networks, nodes);
  }
};

}  // namespace

NicKinds::NicKinds(const std::vector<const Nics*>& nodes, const std::vector<int>& network_of)
    : network_of_(network_of) {
  std::map<NicKind, std::vector<const Nics*>> alike;
  for (const Nics* nics : nodes) alike[NamesOf(*nics)].push_back(nics);
  std::vector<Seen> sets;
  sets.reserve(alike.size());
  for (auto& [names, members] : alike) sets.push_back({names, std::move(members)});
  // Common kinds come first, so that many single odd machines do not exclude them.
  std::stable_sort(sets.begin(), sets.end(), [](const Seen& a, const Seen& b) {
    return a.nodes.size() != b.nodes.size() ? a.nodes.size() > b.nodes.size()
                                            : a.names.size() > b.names.size();
  });
  std::vector<Seen> looked_at(
      sets.begin(), sets.begin() + static_cast<std::ptrdiff_t>(std::min(sets.size(), kMaxKinds)));
  std::stable_sort(looked_at.begin(), looked_at.end(),
                   [](const Seen& a, const Seen& b) { return a.names.size() > b.names.size(); });
  std::vector<Kind> whole;  // kinds that are not a broken form of another kind
  for (Seen& set : looked_at) {
    const bool held = std::any_of(whole.begin(), whole.end(),
                                  [&](const Kind& kind) { return kind.HasBroken(set); });
    if (held) continue;
    for (Kind& other : whole) {
      if (!Shares(other.seen.names, set.names) || Holds(other.seen.names, set.names)) continue;
      other.seen.overlaps = true;
      set.overlaps = true;
    }
    NicWiring switches(nullptr);
    NicWiring networks(&network_of_);
    for (const Nics* nics : set.nodes) {
      switches.Add(*nics);
      networks.Add(*nics);
    }
    whole.push_back({std::move(set), std::move(switches), std::move(networks)});
  }
  const auto take = [this](Kind& kind) {
    kinds_.push_back(std::move(kind.seen.names));
    wired_.push_back({std::move(kind.switches), std::move(kind.networks)});
  };
  for (Kind& kind : whole) {
    if (kind.seen.nodes.size() > 1) take(kind);
  }
  const auto has_more = [this](const Seen& set) {
    return set.nodes.size() == 1 && FindLess(*set.nodes[0], set.names) != nullptr;
  };
  for (const Seen& set : sets) {
    if (!has_more(set)) rails_ = std::max(rails_, set.names.size());
  }
  for (Kind& kind : whole) {
    const Seen& set = kind.seen;
    const bool full = set.names.size() == rails_ && !set.overlaps;
    if (set.nodes.size() == 1 && full && !has_more(set)) take(kind);
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
  return found != nullptr ? found : FindLess(nics, names);
}

const NicKind* NicKinds::FindLess(const Nics& nics, const NicKind& names) const {
  const NicKind* found = nullptr;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const NicKind& kind = kinds_[i];
    if (kind.size() >= names.size() || !Holds(names, kind) || LacksHalf(names, kind)) continue;
    size_t same = 0;
    size_t other = 0;
    bool lost = false;    // one of the kind's NICs is in a network where the kind has none
    bool gained = false;  // another NIC is in one of the kind's networks
    for (const auto& [name, cable] : nics) {
      const bool own = std::binary_search(kind.begin(), kind.end(), name, NaturalOrder());
      const bool inside = wired_[i].networks.Has(name, cable).has_value();
      lost = lost || (own && !inside);
      gained = gained || (!own && inside);
      if (!own) continue;
      if (const auto has = wired_[i].switches.Has(name, cable)) ++(*has ? same : other);
    }
    // A storage NIC before the others shifts all names by one: another kind with the same names.
    if (other > same || (lost && gained)) continue;
    if (found == nullptr || kind.size() > found->size()) found = &kind;
  }
  return found;
}

}  // namespace railhead::fabric
