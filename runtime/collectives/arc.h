// SPDX-License-Identifier: Apache-2.0
//
// Consecutive ranks on a circle (the first follows the last), as exchanged in log2(n) steps by
// Bruck's all-gather and by recursive halving (algorithms.h).
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_ARC_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_ARC_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/base/parts.h"

namespace railhead::collectives {

// Parts of `count` ranks from `first`: at most two ranges, since the ranks may wrap around. Parts
// are consecutive in rank order.
class Arc {
 public:
  static constexpr size_t kPieces = 2;

  Arc(const Parts& parts, size_t first, size_t count) : parts_(parts), first_(first) {
    before_end_ = std::min(count, parts.ranks() - first);
    after_ = count - before_end_;
  }

  // May be empty.
  Range operator[](size_t piece) const {
    return piece == 0 ? Together(first_, before_end_) : Together(0, after_);
  }

 private:
  Range Together(size_t first, size_t count) const {
    if (count == 0) return {};
    const size_t begin = parts_[first].begin;
    const Range last = parts_[first + count - 1];
    return {begin, last.begin + last.size - begin};
  }

  const Parts& parts_;
  size_t first_;
  size_t before_end_;
  size_t after_;
};

// Consecutive parts of the same sizes.
class PackedParts {
 public:
  explicit PackedParts(const Parts& parts) {
    for (size_t rank = 0; rank < parts.ranks(); ++rank) {
      begins_.push_back(total_);
      sizes_.push_back(parts[rank].size);
      total_ += sizes_.back();
    }
  }

  size_t total() const { return total_; }
  // Must not outlive this.
  Parts Of() const { return Parts(sizes_, begins_, 1); }

 private:
  std::vector<size_t> sizes_;
  std::vector<size_t> begins_;
  size_t total_ = 0;
};

inline bool FollowEachOther(const Parts& parts) {
  if (parts.equal()) return true;
  for (size_t rank = 1; rank < parts.ranks(); ++rank) {
    const Range before = parts[rank - 1];
    if (parts[rank].begin != before.begin + before.size) return false;
  }
  return true;
}

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_ARC_H_
