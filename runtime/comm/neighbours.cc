// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/neighbours.h"

#include <algorithm>

namespace railhead::comm {

bool Connected(int rank, int other, int world_size) {
  if (rank == other) return false;
  if (world_size <= kAllConnected) return true;
  const int forward = (other + world_size - rank) % world_size;
  const int distances[] = {forward, world_size - forward};
  return std::any_of(std::begin(distances), std::end(distances),
                     [](int distance) { return (distance & (distance - 1)) == 0; });
}

std::vector<int> Neighbours(int rank, int world_size) {
  std::vector<int> neighbours;
  for (int other = 0; other < world_size; ++other) {
    if (Connected(rank, other, world_size)) neighbours.push_back(other);
  }
  std::sort(neighbours.begin(), neighbours.end(),
            [rank](int a, int b) { return (rank ^ a) < (rank ^ b); });
  return neighbours;
}

}  // namespace railhead::comm
