// SPDX-License-Identifier: Apache-2.0
//
// Number of objects that a list requests per page. Pure. Used by Reflector.
#ifndef RAILHEAD_KUBE_CACHE_PAGE_SIZE_H_
#define RAILHEAD_KUBE_CACHE_PAGE_SIZE_H_

#include "absl/status/status.h"

namespace railhead::kube {

// Returns the page size for the list after one that ended with `listed`. After a page that was too
// large or timed out, pages are halved, because the same list would fail again: down to one object,
// or to 8 after a timeout. After a list that took too long for its version (OutOfRange) they are
// doubled, and after a complete list they grow by an eighth of `initial`, up to that: the large
// objects may be gone.
int NextPageSize(const absl::Status& listed, int size, int initial);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CACHE_PAGE_SIZE_H_
