// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_fetch.h"

#include <curl/curl.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kube/curl_time.h"

namespace railhead::kube {
namespace {

constexpr size_t kMaxFetchedHeaderBytes = 64U << 10U;

struct Fetching {
  absl::FunctionRef<absl::Status(absl::string_view)> take;
  absl::Status taken;
  size_t header_bytes = 0;
};

size_t TakeBody(const char* bytes, size_t one, size_t count, void* to) {
  auto* const fetching = static_cast<Fetching*>(to);
  fetching->taken = fetching->take({bytes, one * count});
  return fetching->taken.ok() ? one * count : 0;
}

// Headers are of no interest, but libcurl keeps them.
size_t TakeHeader(const char*, size_t one, size_t count, void* to) {
  auto* const fetching = static_cast<Fetching*>(to);
  fetching->header_bytes += one * count;
  if (fetching->header_bytes <= kMaxFetchedHeaderBytes) return one * count;
  fetching->taken = absl::ResourceExhaustedError(
      absl::StrCat("the response has more than ", kMaxFetchedHeaderBytes, " bytes of headers"));
  return 0;
}

}  // namespace

absl::Status Fetch(const FetchRequest& request,
                   absl::FunctionRef<absl::Status(absl::string_view)> take) {
  const auto failed = [&](absl::StatusCode reason, absl::string_view why) {
    return absl::Status(reason, absl::StrCat(request.url, ": ", why));
  };
  // Not thread-safe by itself in every build of libcurl, and needed once.
  static const CURLcode kInitialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(kInitialized);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  if (curl == nullptr) return failed(absl::StatusCode::kUnavailable, "out of memory");
  Fetching fetching{take, absl::OkStatus(), 0};
  curl_easy_setopt(curl.get(), CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 0L);
  if (!request.use_proxy) curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  if (!request.form.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, request.form.c_str());
  }
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, CurlMilliseconds(request.timeout));
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT_MS,
                   CurlMilliseconds(request.connect_timeout));
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &TakeBody);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &fetching);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, &TakeHeader);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &fetching);
  const CURLcode code = curl_easy_perform(curl.get());
  if (!fetching.taken.ok()) {
    return failed(absl::StatusCode::kResourceExhausted, fetching.taken.message());
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return failed(
        absl::StatusCode::kDeadlineExceeded,
        absl::StrCat("no complete response within ", absl::FormatDuration(request.timeout)));
  }
  if (code != CURLE_OK) return failed(absl::StatusCode::kUnavailable, curl_easy_strerror(code));
  int64_t status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  for (const int expected : request.expected) {
    if (status == expected) return absl::OkStatus();
  }
  return failed(absl::StatusCode::kUnavailable, absl::StrCat("HTTP status ", status, ", not 200"));
}

}  // namespace railhead::kube
