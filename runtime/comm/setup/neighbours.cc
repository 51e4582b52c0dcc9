// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/neighbours.h"

namespace railhead::comm {
namespace {

bool IsPowerOfTwo(int distance) { return (distance & (distance - 1)) == 0; }

}  // namespace

std::vector<int> Neighbours(int rank, int world_size) {
  std::vector<int> neighbours;
  for (int distance = 1; distance < world_size; ++distance) {
    if (world_size > kAllConnected && !IsPowerOfTwo(distance) &&
        !IsPowerOfTwo(world_size - distance)) {
      continue;
    }
    neighbours.push_back((rank + distance) % world_size);
  }
  return neighbours;
}

std::vector<int> RingNeighbours(int rank, int world_size) {
  if (world_size == 1) return {};
  if (world_size == 2) return {1 - rank};
  return {(rank + 1) % world_size, (rank + world_size - 1) % world_size};
}

}  // namespace railhead::comm
