// SPDX-License-Identifier: Apache-2.0
//
// Time limits as libcurl takes them. Used by RestClient and Fetch.
#ifndef RAILHEAD_KUBE_CURL_TIME_H_
#define RAILHEAD_KUBE_CURL_TIME_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace railhead::kube {

// Returns a limit in milliseconds, rounded up, at least 1: for libcurl 0 means no limit, and a
// caller's remaining time may be less than a millisecond.
inline int64_t CurlMilliseconds(absl::Duration limit) {
  return std::max<int64_t>(1, absl::ToInt64Milliseconds(absl::Ceil(limit, absl::Milliseconds(1))));
}

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CURL_TIME_H_
