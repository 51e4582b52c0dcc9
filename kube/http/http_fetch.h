// SPDX-License-Identifier: Apache-2.0
//
// A single HTTP request to a server other than the API server (RestClient): a pod's metrics,
// Prometheus.
#ifndef RAILHEAD_KUBE_HTTP_HTTP_FETCH_H_
#define RAILHEAD_KUBE_HTTP_HTTP_FETCH_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace railhead::kube {

struct FetchRequest {
  std::string url;                    // of http or https
  std::string form;                   // empty: GET; else sent by POST
  std::vector<int> expected = {200};  // HTTP statuses
  bool use_proxy = false;             // the proxy that the environment names
  absl::Duration timeout;             // from connecting to the last byte
  absl::Duration connect_timeout = timeout;
};

// Sends the request over a new connection and passes the body to `take` in pieces. Does not
// follow redirects. Thread-safe. Errors name the URL:
//   ResourceExhausted  `take` returned an error, whose message this has; or headers over 64 KiB
//   DeadlineExceeded   the timeout passed
//   Unavailable        no connection, or another HTTP status
absl::Status Fetch(const FetchRequest& request,
                   absl::FunctionRef<absl::Status(absl::string_view)> take);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_HTTP_FETCH_H_
