// SPDX-License-Identifier: Apache-2.0
#include "kube/page_size.h"

#include <algorithm>

namespace railhead::kube {
namespace {

// So few of the largest objects that there are (etcd takes 1.5 MiB) fit into an answer; a server
// that is slow for another reason would be asked once for each object.
constexpr int kShortestPage = 8;
// Slowly: where objects stay large, each growth beyond what fits costs a list that fails.
constexpr int kListsToGrow = 8;

}  // namespace

int NextPageSize(const absl::Status& listed, int size, int initial) {
  if (absl::IsResourceExhausted(listed) || absl::IsDeadlineExceeded(listed)) {
    return std::max(std::min(size, kShortestPage), size / 2);
  }
  if (!listed.ok()) return size;
  return std::min(initial, size + std::max(1, initial / kListsToGrow));
}

}  // namespace railhead::kube
