// SPDX-License-Identifier: Apache-2.0
//
// Reader of a scraper's request, as far as the metrics page needs it. Pure. Used by PageServer.
#ifndef RAILHEAD_RUNTIME_METRICS_PAGE_REQUEST_H_
#define RAILHEAD_RUNTIME_METRICS_PAGE_REQUEST_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace railhead::metrics {

inline constexpr size_t kLongestRequest = 8 << 10;

enum class PageRequest {
  kIncomplete,  // read on
  kPage,        // GET /metrics
  kHead,        // HEAD /metrics
  kNotFound,    // another path
  kNotAllowed,  // another method
  kMalformed,   // is not HTTP/1, or is longer than kLongestRequest
};

// Parses the bytes that a client has already sent. Ignores header fields and a body: the connection
// ends after the answer.
PageRequest ReadPageRequest(absl::string_view bytes);

}  // namespace railhead::metrics

#endif  // RAILHEAD_RUNTIME_METRICS_PAGE_REQUEST_H_
