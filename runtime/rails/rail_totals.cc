// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/rail_totals.h"

#include <algorithm>

namespace railhead::rails {

void Add(const RailTotals& other, RailTotals& sum) {
  sum.up = sum.up && other.up;
  sum.peers += other.peers;
  sum.lost_peers += other.lost_peers;
  sum.transmit_bytes += other.transmit_bytes;
  sum.receive_bytes += other.receive_bytes;
  sum.retransmits += other.retransmits;
  sum.failovers += other.failovers;
  sum.returns += other.returns;
  sum.strangers += other.strangers;
  sum.weight = std::min(sum.weight, other.weight);
}

void Add(const std::vector<RailTotals>& others, std::vector<RailTotals>& sums) {
  for (const RailTotals& other : others) {
    const auto same = std::find_if(sums.begin(), sums.end(), [&](const RailTotals& sum) {
      return ToString(sum.name) == ToString(other.name);
    });
    if (same == sums.end()) {
      sums.push_back(other);
    } else {
      Add(other, *same);
    }
  }
}

}  // namespace railhead::rails
