// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/page_client.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kube/http/http_fetch.h"
#include "operator/verdict/page_lines.h"

namespace railhead::op {
namespace {

constexpr absl::Duration kConnectWithin = absl::Milliseconds(500);

// `address` in the order of the network.
bool IsOfAHost(const in_addr& address) {
  const uint32_t bits = ntohl(address.s_addr);
  return bits >> 24U != 0 && bits >> 24U != 127 && bits >> 16U != 0xa9fe && bits >> 28U < 0xe;
}

bool IsOfAHost(const in6_addr& address) {
  if (IN6_IS_ADDR_V4MAPPED(&address) || IN6_IS_ADDR_V4COMPAT(&address)) return false;
  return !IN6_IS_ADDR_UNSPECIFIED(&address) && !IN6_IS_ADDR_LOOPBACK(&address) &&
         !IN6_IS_ADDR_LINKLOCAL(&address) && !IN6_IS_ADDR_MULTICAST(&address);
}

}  // namespace

absl::Status CheckAddressOfPod(const std::string& address) {
  in_addr v4 = {};
  in6_addr v6 = {};
  if ((inet_pton(AF_INET, address.c_str(), &v4) == 1 && IsOfAHost(v4)) ||
      (inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IsOfAHost(v6))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "status.podIP '", address, "' is not an address that a pod can have; skipping this pod"));
}

absl::StatusOr<std::string> AskPod(const std::string& address, int port, absl::Duration timeout) {
  if (absl::Status status = CheckAddressOfPod(address); !status.ok()) return status;
  return FetchPage(address, port, timeout);
}

absl::StatusOr<std::string> FetchPage(const std::string& address, int port,
                                      absl::Duration timeout) {
  const bool is_v6 = absl::StrContains(address, ':');
  const std::string url =
      absl::StrCat("http://", is_v6 ? "[" : "", address, is_v6 ? "]" : "", ":", port, "/metrics");
  verdict::PageLines lines;
  // A reachable pod accepts within a round trip; if a policy drops packets, it never does.
  absl::Status fetched = kube::Fetch({.url = url,
                                      .form = "",
                                      .timeout = timeout,
                                      .connect_timeout = std::min(timeout, kConnectWithin)},
                                     [&](absl::string_view bytes) { return lines.Append(bytes); });
  if (absl::IsResourceExhausted(fetched)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(fetched.message(), "; it is not the metrics page of Railhead's runtime"));
  }
  if (!fetched.ok()) return fetched;
  return std::move(lines).Take();
}

}  // namespace railhead::op
