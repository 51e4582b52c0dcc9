// SPDX-License-Identifier: Apache-2.0
#include "placement/request.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace railhead::placement {

std::vector<int64_t> GroupSizes(const PlacementRequest& request) {
  std::vector<int64_t> sizes;
  int64_t product = 1;
  for (size_t i = 0; i + 1 < request.parallelism.size(); ++i) {
    product *= request.parallelism[i].second;
    sizes.push_back(product);
  }
  return sizes;
}

}  // namespace railhead::placement
