// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/range_set.h"

#include <algorithm>
#include <iterator>

namespace railhead::rails {

bool RangeSet::Add(uint64_t begin, uint64_t end) {
  if (begin >= end) return begin == end;
  // The first range that ends behind our beginning: ours must lie wholly before it.
  const auto after = std::find_if(ranges_.begin(), ranges_.end(),
                                  [begin](const auto& range) { return range.second > begin; });
  if (after != ranges_.end() && after->first < end) return false;
  total_ += end - begin;
  const bool joins_after = after != ranges_.end() && after->first == end;
  const bool joins_before = after != ranges_.begin() && std::prev(after)->second == begin;
  if (joins_before && joins_after) {
    std::prev(after)->second = after->second;
    ranges_.erase(after);
  } else if (joins_before) {
    std::prev(after)->second = end;
  } else if (joins_after) {
    after->first = begin;
  } else {
    ranges_.insert(after, {begin, end});
  }
  return true;
}

bool RangeSet::Contains(uint64_t begin, uint64_t end) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [begin, end](const auto& range) {
    return range.first <= begin && end <= range.second;
  });
}

bool RangeSet::Overlaps(uint64_t begin, uint64_t end) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [begin, end](const auto& range) {
    return range.first < end && begin < range.second;
  });
}

void RangeSet::Clear() {
  ranges_.clear();
  total_ = 0;
}

}  // namespace railhead::rails
