// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/nic_wiring.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "fabric/discovery/network.h"

namespace railhead::fabric {

void NicWiring::Add(const Nics& nics) {
  for (const auto& [name, cable] : nics) {
    At& at = at_[PlaceOf(cable)];
    at.most = std::max(at.most, ++at.count[name]);
  }
}

std::optional<bool> NicWiring::Has(const std::string& nic, const Cable& cable) const {
  const auto at = at_.find(PlaceOf(cable));
  if (at == at_.end()) return std::nullopt;
  const auto count = at->second.count.find(nic);
  return count != at->second.count.end() && count->second * 2 >= at->second.most;
}

int NicWiring::PlaceOf(const Cable& cable) const {
  return network_of_ == nullptr ? cable.at : (*network_of_)[static_cast<size_t>(cable.at)];
}

}  // namespace railhead::fabric
