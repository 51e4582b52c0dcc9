// SPDX-License-Identifier: Apache-2.0
//
// Matches ranks with cores, one rank after the other, along alternating paths (Kuhn's algorithm).
#include "runtime/comm/setup/cores.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

namespace railhead::comm {

bool OneForEach(absl::Span<const Cores> ranks) {
  std::vector<std::optional<size_t>> holders;  // by core
  for (const Cores& cores : ranks) holders.resize(std::max(holders.size(), cores.size() * 8));
  std::vector<bool> asked;
  // Returns whether the rank gets a core, if necessary by moving others to other cores.
  const std::function<bool(size_t)> settle = [&](size_t rank) {
    for (size_t core = 0; core < holders.size(); ++core) {
      if (asked[core] || !Has(ranks[rank], core)) continue;
      asked[core] = true;
      if (!holders[core].has_value() || settle(*holders[core])) {
        holders[core] = rank;
        return true;
      }
    }
    return false;
  };
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    asked.assign(holders.size(), false);
    if (!settle(rank)) return false;
  }
  return true;
}

}  // namespace railhead::comm
