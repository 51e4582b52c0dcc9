// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/tree.h"

namespace railhead::bootstrap {

std::optional<int> Parent(int rank) {
  if (rank == 0) return std::nullopt;
  return (rank - 1) / kArity;
}

std::optional<int> Guardian(int rank) {
  const std::optional<int> parent = Parent(rank);
  return parent.has_value() ? Parent(*parent) : std::nullopt;
}

std::vector<int> Children(int rank, int world_size) {
  std::vector<int> children;
  for (int i = 1; i <= kArity; ++i) {
    // Compared before it is multiplied: the largest rank has no children.
    if (rank > (world_size - 1 - i) / kArity || world_size - 1 < i) break;
    children.push_back(kArity * rank + i);
  }
  return children;
}

std::vector<int> Grandchildren(int rank, int world_size) {
  std::vector<int> grandchildren;
  for (const int child : Children(rank, world_size)) {
    for (const int grandchild : Children(child, world_size)) grandchildren.push_back(grandchild);
  }
  return grandchildren;
}

std::vector<int> Subtree(int rank, int world_size) {
  std::vector<int> subtree = {rank};
  for (const int child : Children(rank, world_size)) {
    const std::vector<int> below = Subtree(child, world_size);
    subtree.insert(subtree.end(), below.begin(), below.end());
  }
  return subtree;
}

bool IsAbove(int one, int other) {
  // Numbers grow on the way down.
  std::optional<int> above = Parent(other);
  while (above.has_value() && *above > one) above = Parent(*above);
  return above == one;
}

int Depth(int rank) {
  int depth = 0;
  for (std::optional<int> above = Parent(rank); above.has_value(); above = Parent(*above)) ++depth;
  return depth;
}

int Height(int rank, int world_size) {
  // The first child's part of the tree is the deepest.
  const std::vector<int> children = Children(rank, world_size);
  return children.empty() ? 0 : 1 + Height(children.front(), world_size);
}

}  // namespace railhead::bootstrap
