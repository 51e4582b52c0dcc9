// SPDX-License-Identifier: Apache-2.0
//
// Counters of a rail, and their sum: over the peers of a mesh, the meshes of a communicator
// (collectives and transfers), and the communicators of a process.
#ifndef RAILHEAD_RUNTIME_RAILS_RAIL_TOTALS_H_
#define RAILHEAD_RUNTIME_RAILS_RAIL_TOTALS_H_

#include <cstdint>
#include <vector>

#include "runtime/rails/peer.h"

namespace railhead::rails {

struct RailTotals {
  RailName name;
  bool up = true;
  int peers = 0;       // with a link on this rail; one with links of two meshes counts twice
  int lost_peers = 0;  // of those, currently unreachable
  uint64_t transmit_bytes = 0;
  uint64_t receive_bytes = 0;
  uint64_t retransmits = 0;
  uint64_t failovers = 0;
  uint64_t returns = 0;
  uint64_t strangers = 0;  // rejected connections
  double weight = 1;       // measured goodput relative to the fastest rail
};

// Counters are summed. The rail is up if it is up for both, and has the lower weight. The name is
// that of `sum`.
void Add(const RailTotals& other, RailTotals& sum);
// Adds each rail to the one with its name, or behind them all.
void Add(const std::vector<RailTotals>& others, std::vector<RailTotals>& sums);

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_RAIL_TOTALS_H_
