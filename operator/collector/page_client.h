// SPDX-License-Identifier: Apache-2.0
//
// HTTP client that scrapes training pods. Their addresses and responses are untrusted, so addresses
// are checked, and time and size are limited. Used by PagePoller.
#ifndef RAILHEAD_OPERATOR_COLLECTOR_PAGE_CLIENT_H_
#define RAILHEAD_OPERATOR_COLLECTOR_PAGE_CLIENT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace railhead::op {

// Returns InvalidArgument unless a pod can have this address. Rejects names, which are never
// resolved, and loopback, link-local, unspecified and multicast addresses. A forged pod status
// could otherwise make the operator call itself, or the cloud's metadata server.
absl::Status CheckAddressOfPod(const std::string& address);

// Scrapes a pod: CheckAddressOfPod, then FetchPage.
absl::StatusOr<std::string> AskPod(const std::string& address, int port, absl::Duration timeout);

// Sends GET http://ADDRESS:PORT/metrics over a new connection, never through a proxy; returns the
// lines that verdict::PageLines keeps. Errors name address and port:
//   ResourceExhausted more than verdict::PageLines accepts, or more than 64 KiB of headers
//   DeadlineExceeded  response incomplete after `timeout`, or not connected after 500 ms
//   Unavailable       connection refused, or a status other than 200. Redirects are not followed,
//                     since a user could make the operator call any host
// Thread-safe.
absl::StatusOr<std::string> FetchPage(const std::string& address, int port, absl::Duration timeout);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_PAGE_CLIENT_H_
