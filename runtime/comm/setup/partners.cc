// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/partners.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace railhead::comm {

std::vector<int> Partners(const std::vector<int>& places) {
  // First the first rank of each place, then the second ones: neighbours in this order are of
  // different places until a single place is left.
  std::map<int, int> met;                  // ranks of each place
  std::vector<std::pair<int, int>> order;  // place in the place, rank
  order.reserve(places.size());
  for (size_t r = 0; r < places.size(); ++r) {
    order.emplace_back(met[places[r]]++, static_cast<int>(r));
  }
  std::sort(order.begin(), order.end());
  std::vector<int> partners(places.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t beside = i ^ 1U;
    partners[static_cast<size_t>(order[i].second)] =
        order[beside < order.size() ? beside : i].second;
  }
  return partners;
}

}  // namespace railhead::comm
