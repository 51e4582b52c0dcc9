// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/neighbours.h"

namespace railhead::comm {
namespace {

// The colour of the edge between `rank` and the next: two alternate, and a ring of an odd number
// needs a third one to close.
int Colour(int rank, int world_size) {
  return rank == world_size - 1 && world_size % 2 == 1 ? 2 : rank % 2;
}

}  // namespace

std::vector<int> Neighbours(int rank, int world_size) {
  if (world_size == 1) return {};
  const int next = (rank + 1) % world_size;
  const int previous = (rank + world_size - 1) % world_size;
  if (next == previous) return {next};
  if (Colour(rank, world_size) < Colour(previous, world_size)) return {next, previous};
  return {previous, next};
}

}  // namespace railhead::comm
