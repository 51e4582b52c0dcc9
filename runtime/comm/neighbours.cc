// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/neighbours.h"

#include <algorithm>
#include <utility>

namespace railhead::comm {

bool Connected(int rank, int other, int world_size) {
  if (rank == other) return false;
  if (world_size <= kAllConnected) return true;
  const int forward = (other + world_size - rank) % world_size;
  const int distances[] = {forward, world_size - forward};
  return std::any_of(std::begin(distances), std::end(distances),
                     [](int distance) { return (distance & (distance - 1)) == 0; });
}

namespace {

std::vector<int> InOrder(int rank, std::vector<int> neighbours) {
  std::sort(neighbours.begin(), neighbours.end(),
            [rank](int a, int b) { return (rank ^ a) < (rank ^ b); });
  return neighbours;
}

}  // namespace

std::vector<int> Neighbours(int rank, int world_size) {
  std::vector<int> neighbours;
  for (int other = 0; other < world_size; ++other) {
    if (Connected(rank, other, world_size)) neighbours.push_back(other);
  }
  return InOrder(rank, std::move(neighbours));
}

std::vector<int> RingNeighbours(int rank, int world_size) {
  return InOrder(rank, {(rank + 1) % world_size, (rank + world_size - 1) % world_size});
}

}  // namespace railhead::comm
