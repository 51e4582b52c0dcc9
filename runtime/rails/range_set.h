// SPDX-License-Identifier: Apache-2.0
//
// Set of arrived bytes of a transfer: disjoint ranges, adjacent ones merged. Chunks arrive nearly
// in order, so there are rarely more ranges than rails. Used by ReceiveLedger.
#ifndef RAILHEAD_RUNTIME_RAILS_RANGE_SET_H_
#define RAILHEAD_RUNTIME_RAILS_RANGE_SET_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace railhead::rails {

class RangeSet {
 public:
  // Adds [begin, end). Returns false and changes nothing if the set contains any of it.
  bool Add(uint64_t begin, uint64_t end);

  // Returns true if the set contains all of [begin, end).
  bool Contains(uint64_t begin, uint64_t end) const;

  // Returns true if the set contains any of [begin, end).
  bool Overlaps(uint64_t begin, uint64_t end) const;

  // Bytes in the set.
  uint64_t total() const { return total_; }

  // Empties the set but keeps its memory.
  void Clear();

 private:
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
  uint64_t total_ = 0;
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_RANGE_SET_H_
