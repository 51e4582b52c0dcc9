// SPDX-License-Identifier: Apache-2.0
#include "kube/cache/page_size.h"

#include <algorithm>

namespace railhead::kube {
namespace {

// A server that is slow for another reason than large objects would get a request per object.
constexpr int kShortestPageInTime = 8;
// Slowly: where objects stay large, each growth beyond what fits costs a list that fails.
constexpr int kListsToGrow = 8;

}  // namespace

int NextPageSize(const absl::Status& listed, int size, int initial) {
  if (absl::IsResourceExhausted(listed)) return std::max(1, size / 2);
  if (absl::IsDeadlineExceeded(listed)) {
    return std::max(std::min(size, kShortestPageInTime), size / 2);
  }
  if (absl::IsOutOfRange(listed)) return std::min(initial, 2 * size);
  if (!listed.ok()) return size;
  return std::min(initial, size + std::max(1, initial / kListsToGrow));
}

}  // namespace railhead::kube
