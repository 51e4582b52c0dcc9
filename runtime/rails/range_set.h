// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_RAILS_RANGE_SET_H_
#define RAILHEAD_RUNTIME_RAILS_RANGE_SET_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace railhead::rails {

// Which bytes of a transfer have arrived: disjoint ranges, neighbours merged. Chunks come nearly in
// order, so there are hardly ever more ranges than rails.
class RangeSet {
 public:
  // Adds [begin, end). Returns false, and changes nothing, if any of it is there already.
  bool Add(uint64_t begin, uint64_t end);

  // Whether all of [begin, end) is in the set.
  bool Contains(uint64_t begin, uint64_t end) const;

  // Whether any of [begin, end) is in the set.
  bool Overlaps(uint64_t begin, uint64_t end) const;

  // Bytes in the set.
  uint64_t total() const { return total_; }

  // Empties the set and keeps its memory.
  void Clear();

 private:
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
  uint64_t total_ = 0;
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_RANGE_SET_H_
