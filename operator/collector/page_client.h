// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_COLLECTOR_PAGE_CLIENT_H_
#define RAILHEAD_OPERATOR_COLLECTOR_PAGE_CLIENT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace railhead::op {

// Whether a pod can have this address: InvalidArgument for a name, which is never looked up, and
// for addresses of this machine alone, of its link, of no host or of many. A status that says so
// would have the operator ask itself, or the cloud's metadata server.
absl::Status CheckAddressOfPod(const std::string& address);

// Asks a pod for its metrics page: CheckAddressOfPod, and FetchPage.
absl::StatusOr<std::string> AskPod(const std::string& address, int port, absl::Duration timeout);

// GET http://ADDRESS:PORT/metrics, over a connection of its own and never over a proxy; of the
// answer the lines that verdict::PageLines keeps. Errors name address and port:
//   ResourceExhausted more than verdict::PageLines takes, or more than 64 KiB of headers
//   DeadlineExceeded  the page was not complete within `timeout`, or no connection within 500 ms
//   Unavailable       nobody listens, or another status than 200: a redirect is not followed, for
//                     it would have the operator ask whomever a user likes
// Thread-safe.
absl::StatusOr<std::string> FetchPage(const std::string& address, int port, absl::Duration timeout);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_PAGE_CLIENT_H_
