// SPDX-License-Identifier: Apache-2.0
//
// Position of a rank in the binomial tree of `root`. Relative to the root, the parent of rank v is
// v without its lowest bit; so v and its subtree are consecutive ranks.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_BINOMIAL_PLACE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_BINOMIAL_PLACE_H_

#include <algorithm>
#include <bit>
#include <cstddef>

namespace railhead::collectives {

class BinomialPlace {
 public:
  BinomialPlace(int rank, int world_size, int root)
      : rank_(rank), ranks_(world_size), seen_((rank - root + world_size) % world_size) {
    const int reach = seen_ == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(ranks_)))
                                 : seen_ & -seen_;
    while ((1 << children_) < reach && seen_ + (1 << children_) < ranks_) ++children_;
    size_ = std::min(reach, ranks_ - seen_);
  }

  bool is_root() const { return seen_ == 0; }
  int parent() const { return (rank_ - (seen_ & -seen_) + ranks_) % ranks_; }
  // Child i is 2^i ranks further; the last has the largest subtree.
  size_t children() const { return static_cast<size_t>(children_); }
  int child(size_t i) const { return (rank_ + (1 << i)) % ranks_; }
  // Ranks in this rank's subtree, including itself.
  size_t size() const { return static_cast<size_t>(size_); }
  // Ranks in the subtree of child i.
  size_t child_size(size_t i) const {
    const size_t distance = size_t{1} << i;
    return std::min(distance, size() - distance);
  }

 private:
  int rank_;
  int ranks_;
  int seen_;
  int children_ = 0;
  int size_;
};

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_BINOMIAL_PLACE_H_
