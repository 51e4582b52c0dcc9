// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/partners.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace railhead::comm {

std::vector<int> Partners(const std::vector<int>& places) {
  // Orders the first rank of each place first, then the second ones. So neighbours in this order
  // are in different places, until only one place has ranks left.
  std::map<int, int> met;                  // ranks of each place before this one
  std::vector<std::pair<int, int>> order;  // number in its place, rank
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
