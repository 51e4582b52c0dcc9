// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_PAGE_CLIENT_H_
#define RAILHEAD_OPERATOR_COLLECTOR_PAGE_CLIENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace railhead::op {

// Asks a pod for its metrics page: GET http://ADDRESS:PORT/metrics, over a connection of its own
// and never over a proxy. Errors name address and port:
//   InvalidArgument   `address` is no IP address; names of users' are never looked up
//   ResourceExhausted more than verdict::kMaxPageBytes, or more than 64 KiB of headers
//   DeadlineExceeded  the page was not complete within `timeout`
//   Unavailable       nobody listens, or another status than 200: a redirect is not followed, for
//                     it would have the operator ask whomever a user likes
// Thread-safe, once a kube::RestClient has been made, which initializes libcurl.
absl::StatusOr<std::string> FetchPage(const std::string& address, int port, absl::Duration timeout);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_PAGE_CLIENT_H_
