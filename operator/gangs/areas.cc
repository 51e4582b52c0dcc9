// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/areas.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "placement/node_room.h"

namespace railhead::op::gangs {

using fabric::FabricModel;
using placement::PlacementRequest;

Outside Both(Outside a, const Outside& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Outside Areas::FailedThere(const Gang& gang) const {
  const auto found = failed_on_->find(gang.lineage);
  if (found == failed_on_->end()) return {};
  return Excluding("a pod of this gang failed there recently", [&](size_t node) {
    return found->second.contains(tree_.model.nodes[node].name);
  });
}

Outside Areas::OtherRails(const Gang& gang, const PlacementRequest& request) {
  std::set<uint64_t> rails;
  const FabricModel& model = room_->ModelFor(gang, {}, {});
  for (const Released& released : gang.released) {
    const std::optional<size_t> node = room_->IndexOf(released.node);
    if (!node) continue;
    // If no other pod uses rails there, they are the pod's; else assume that it has the first.
    fabric::FabricNode there = model.nodes[*node];
    const uint64_t used = placement::RailBits(there.used_rails);
    const bool alone = there.used_rails.size() == static_cast<size_t>(request.hcas_per_pod);
    there.used_rails.clear();
    rails.insert(alone ? used : placement::RailsOnNode(there, request.hcas_per_pod));
  }
  return Excluding("its rails are not those of the gang's other nodes", [&](size_t node) {
    return !rails.contains(placement::RailsOnNode(model.nodes[node], request.hcas_per_pod));
  });
}

std::vector<Outside> Areas::Of(const Gang& gang, const PlacementRequest& request) {
  std::vector<Outside> areas;
  const std::optional<int> required = fabric::LevelIndex(tree_.model, request.require_level);
  const bool whole = request.require_level.empty();
  std::set<size_t> at;  // nodes that the gang is on
  for (const Released& released : gang.released) {
    if (const std::optional<size_t> node = room_->IndexOf(released.node)) at.insert(*node);
  }
  const Outside other_rails = at.empty() ? Outside() : OtherRails(gang, request);
  const Outside never = request.same_rails ? other_rails : Outside();
  for (size_t level = tree_.model.levels.size(); !at.empty() && level-- > 0;) {
    const Outside within = WithinDomainsOf(at, level);
    if (!other_rails.empty()) areas.push_back(Both(within, other_rails));
    if (never.empty()) areas.push_back(within);
    if (required && static_cast<size_t>(*required) == level) return areas;
  }
  if (tree_.placed < tree_.nodes.size() && tree_.placed > 0) {
    if (unplaced_.empty()) {
      unplaced_ =
          Excluding("no topology label", [this](size_t node) { return node >= tree_.placed; });
    }
    areas.push_back(Both(unplaced_, never));
  }
  if (whole || areas.empty()) areas.push_back(never);
  return areas;
}

Outside Areas::WithinDomainsOf(const std::set<size_t>& at, size_t level) const {
  std::set<int> used;
  for (const size_t node : at) used.insert(room_->domains()[level][node]);
  return Excluding(absl::StrCat("not in the ", tree_.model.levels[level],
                                used.size() == 1 ? "" : "s", " of the gang"),
                   [&](size_t node) { return !used.contains(room_->domains()[level][node]); });
}

}  // namespace railhead::op::gangs
