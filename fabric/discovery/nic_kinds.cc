// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/nic_kinds.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fabric/discovery/network.h"

namespace railhead::fabric {
namespace {

// Clusters have a few kinds of machines; whatever has more is not looked through pair by pair.
constexpr size_t kMaxKinds = 64;

struct Seen {
  NicKind names;
  size_t nodes = 0;
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

}  // namespace

NicKinds::NicKinds(const std::vector<const Nics*>& nodes) {
  std::map<NicKind, size_t> count;
  for (const Nics* nics : nodes) ++count[NamesOf(*nics)];
  std::vector<Seen> sets;
  for (const auto& [names, number] : count) {
    sets.push_back({names, number});
    rails_ = std::max(rails_, names.size());
  }
  std::stable_sort(sets.begin(), sets.end(), [](const Seen& a, const Seen& b) {
    return a.names.size() != b.names.size() ? a.names.size() > b.names.size() : a.nodes > b.nodes;
  });
  std::vector<Seen> whole;  // those that no other holds
  for (Seen& set : sets) {
    if (whole.size() == kMaxKinds) break;
    const bool held = std::any_of(whole.begin(), whole.end(),
                                  [&](const Seen& other) { return Holds(other.names, set.names); });
    if (held) continue;
    for (Seen& other : whole) {
      if (!Shares(other.names, set.names)) continue;
      other.overlaps = true;
      set.overlaps = true;
    }
    whole.push_back(std::move(set));
  }
  for (Seen& set : whole) {
    const bool full = set.names.size() == rails_ && !set.overlaps;
    if (set.nodes > 1 || full) kinds_.push_back(std::move(set.names));
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
  const NicKind* found = nullptr;
  for (const NicKind& kind : kinds_) {
    if (!Holds(kind, names)) continue;
    if (found != nullptr && rails_in(*found) != rails_in(kind)) return nullptr;
    if (found == nullptr) found = &kind;
  }
  return found;
}

}  // namespace railhead::fabric
