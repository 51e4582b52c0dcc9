// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/partners.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace railhead::comm {

int PartnerOf(int rank, const std::vector<int>& places) {
  // First the first rank of each place, then the second ones: neighbours in this order are of
  // different places until a single place is left.
  std::map<int, int> met;                  // ranks of each place
  std::vector<std::pair<int, int>> order;  // place in the place, rank
  order.reserve(places.size());
  for (size_t r = 0; r < places.size(); ++r) {
    order.emplace_back(met[places[r]]++, static_cast<int>(r));
  }
  std::sort(order.begin(), order.end());
  const auto self =
      static_cast<size_t>(std::find_if(order.begin(), order.end(),
                                       [rank](const auto& at) { return at.second == rank; }) -
                          order.begin());
  const size_t beside = self ^ 1U;
  return beside < order.size() ? order[beside].second : rank;
}

}  // namespace railhead::comm
