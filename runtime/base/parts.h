// SPDX-License-Identifier: Apache-2.0
//
// Assigns ranges of a buffer's values to ranks: equal parts, or parts of given sizes. Used by all
// collectives.
#ifndef RAILHEAD_RUNTIME_BASE_PARTS_H_
#define RAILHEAD_RUNTIME_BASE_PARTS_H_

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "absl/types/span.h"

namespace railhead {

// A range of values, or of bytes.
struct Range {
  size_t begin = 0;
  size_t size = 0;
};

class Parts {
 public:
  // No parts.
  Parts() = default;

  // Consecutive parts of equal size; the first `count % ranks` have one value more.
  Parts(size_t ranks, size_t count)
      : ranks_(ranks), count_(count), largest_((count + ranks - 1) / ranks) {}

  // Part r has `unit` times sizes[r] values and starts at `unit` times begins[r]. The lists must
  // outlive this.
  Parts(absl::Span<const size_t> sizes, absl::Span<const size_t> begins, size_t unit)
      : ranks_(sizes.size()),
        sizes_(sizes),
        begins_(begins),
        unit_(unit),
        largest_(unit * *std::max_element(sizes.begin(), sizes.end())) {}

  size_t ranks() const { return ranks_; }
  // Returns true if all parts are consecutive and of one size, by construction.
  bool equal() const { return sizes_.empty() && count_ % ranks_ == 0; }
  // Values of all parts.
  size_t total() const {
    if (sizes_.empty()) return count_;
    return unit_ * std::accumulate(sizes_.begin(), sizes_.end(), size_t{0});
  }
  // End of the last part. An empty part may begin anywhere, and has no end.
  size_t end() const {
    size_t end = 0;
    for (size_t rank = 0; rank < ranks_; ++rank) {
      const Range part = (*this)[rank];
      if (part.size > 0) end = std::max(end, part.begin + part.size);
    }
    return end;
  }
  // Values of the largest part.
  size_t largest() const { return largest_; }

  Range operator[](size_t rank) const {
    if (!sizes_.empty()) return {unit_ * begins_[rank], unit_ * sizes_[rank]};
    const size_t base = count_ / ranks_;
    const size_t longer = count_ % ranks_;
    return {rank * base + std::min(rank, longer), base + (rank < longer ? 1 : 0)};
  }

 private:
  size_t ranks_ = 0;
  size_t count_ = 0;
  absl::Span<const size_t> sizes_;
  absl::Span<const size_t> begins_;
  size_t unit_ = 1;
  size_t largest_ = 0;
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_PARTS_H_
