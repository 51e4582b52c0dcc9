// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/page_client.h"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/verdict/runtime_page.h"

namespace railhead::op {
namespace {

constexpr size_t kMaxHeaderBytes = 64U << 10U;

struct Answer {
  std::string page;
  size_t header_bytes = 0;
  bool too_large = false;
};

size_t TakeBody(const char* bytes, size_t one, size_t count, void* to) {
  auto* const answer = static_cast<Answer*>(to);
  const size_t size = one * count;
  if (size > verdict::kMaxPageBytes - answer->page.size()) {
    answer->too_large = true;
    return 0;
  }
  answer->page.append(bytes, size);
  return size;
}

// Headers are of no interest, but libcurl keeps them.
size_t TakeHeader(const char*, size_t one, size_t count, void* to) {
  auto* const answer = static_cast<Answer*>(to);
  answer->header_bytes += one * count;
  answer->too_large = answer->header_bytes > kMaxHeaderBytes;
  return answer->too_large ? 0 : one * count;
}

bool IsAddress(const std::string& text) {
  in6_addr address = {};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

}  // namespace

absl::StatusOr<std::string> FetchPage(const std::string& address, int port,
                                      absl::Duration timeout) {
  if (!IsAddress(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("status.podIP '", address, "' is no IP address; nobody is asked"));
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
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &TakeBody);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, &TakeHeader);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &answer);
  const CURLcode code = curl_easy_perform(curl.get());
  if (answer.too_large) {
    return absl::ResourceExhaustedError(
        absl::StrCat(url, ": the answer has more than ", verdict::kMaxPageBytes, " bytes, or ",
                     kMaxHeaderBytes, " of headers; it is not Railhead's metrics page"));
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
  return std::move(answer.page);
}

}  // namespace railhead::op
