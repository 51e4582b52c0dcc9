// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/offers.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "fabric/discovery/node_rails.h"
#include "fabric/discovery/observations.h"
#include "fabric/model/fabric_model.h"

namespace railhead::fabric {
namespace {

constexpr int kMostHcas = 32;

int Known(const NodeRails& node) {
  return static_cast<int>(std::count_if(node.rails.begin(), node.rails.end(),
                                        [](const RailNic& rail) { return rail.there(); }));
}

}  // namespace

bool OfferedAlone(const NodeRails& node) {
  return node.kubernetes != nullptr && !node.facts && Known(node) == 0;
}

Offers::Offers(const std::vector<NodeRails>& nodes) {
  for (const NodeRails& node : nodes) {
    const int known = Known(node);
    if (node.kubernetes == nullptr || known == 0 || node.kubernetes->hcas <= known) continue;
    int& hcas = shared_[node.kubernetes->hcas];
    hcas = std::max(hcas, known);
  }
}

std::optional<int> Offers::Hcas(int offered) const {
  const auto shared = shared_.find(offered);
  if (shared != shared_.end()) return shared->second;
  if (offered > kMostHcas) return std::nullopt;
  return offered;
}

int UsedHcas(const FabricNode& node, int offered, int used) {
  const int alive = node.hcas - static_cast<int>(node.dead_rails.size());
  if (offered <= node.hcas) return std::min(used, node.hcas);
  return alive - std::clamp(offered - used, 0, alive);
}

}  // namespace railhead::fabric
