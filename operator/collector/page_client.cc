// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/page_client.h"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/verdict/page_lines.h"

namespace railhead::op {
namespace {

constexpr size_t kMaxHeaderBytes = 64U << 10U;
constexpr absl::Duration kConnectWithin = absl::Milliseconds(500);

struct Answer {
  verdict::PageLines lines;
  absl::Status taken;
  size_t header_bytes = 0;
};

size_t TakeBody(const char* bytes, size_t one, size_t count, void* to) {
  auto* const answer = static_cast<Answer*>(to);
  const size_t size = one * count;
  answer->taken = answer->lines.Append({bytes, size});
  return answer->taken.ok() ? size : 0;
}

// Headers are of no interest, but libcurl keeps them.
size_t TakeHeader(const char*, size_t one, size_t count, void* to) {
  auto* const answer = static_cast<Answer*>(to);
  answer->header_bytes += one * count;
  if (answer->header_bytes <= kMaxHeaderBytes) return one * count;
  answer->taken = absl::InvalidArgumentError(
      absl::StrCat("it has more than ", kMaxHeaderBytes, " bytes of headers"));
  return 0;
}

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

bool IsAddress(const std::string& text) {
  in6_addr address = {};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
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
      "status.podIP '", address, "' is no address that a pod can have; nobody is asked"));
}

absl::StatusOr<std::string> AskPod(const std::string& address, int port, absl::Duration timeout) {
  if (absl::Status status = CheckAddressOfPod(address); !status.ok()) return status;
  return FetchPage(address, port, timeout);
}

absl::StatusOr<std::string> FetchPage(const std::string& address, int port,
                                      absl::Duration timeout) {
  if (!IsAddress(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("status.podIP '", address, "' is not an IP address; skipping this pod"));
  }
  const bool is_v6 = absl::StrContains(address, ':');
  const std::string url =
      absl::StrCat("http://", is_v6 ? "[" : "", address, is_v6 ? "]" : "", ":", port, "/metrics");
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  if (curl == nullptr) return absl::UnavailableError(absl::StrCat(url, ": out of memory"));
  Answer answer;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, absl::ToInt64Milliseconds(timeout));
  // Who is there connects within a round trip; where a policy drops packets nobody ever does.
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT_MS,
                   absl::ToInt64Milliseconds(std::min(timeout, kConnectWithin)));
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &TakeBody);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, &TakeHeader);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &answer);
  const CURLcode code = curl_easy_perform(curl.get());
  if (!answer.taken.ok()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        url, ": ", answer.taken.message(), "; it is not the metrics page of Railhead's runtime"));
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return absl::DeadlineExceededError(
        absl::StrCat(url, ": no whole page within ", absl::FormatDuration(timeout)));
  }
  if (code != CURLE_OK) {
    return absl::UnavailableError(absl::StrCat(url, ": ", curl_easy_strerror(code)));
  }
  long status = 0;  // NOLINT(google-runtime-int): libcurl's type
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) {
    return absl::UnavailableError(absl::StrCat(url, ": HTTP status ", status, ", not 200"));
  }
  return std::move(answer.lines).Take();
}

}  // namespace railhead::op
