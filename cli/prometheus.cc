// SPDX-License-Identifier: Apache-2.0
#include "cli/prometheus.h"

#include <curl/curl.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kube/client.h"
#include "kube/json.h"

namespace railhead::cli {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr size_t kMostBytes = size_t{16} << 20U;
constexpr int kSeconds = 10;

struct Body {
  std::string text;
  bool too_large = false;
};

size_t TakeBytes(const char* bytes, size_t one, size_t count, void* to) {
  auto* const body = static_cast<Body*>(to);
  const size_t size = one * count;
  body->too_large = body->text.size() + size > kMostBytes;
  if (body->too_large) return 0;
  body->text.append(bytes, size);
  return size;
}

}  // namespace

absl::StatusOr<std::vector<PrometheusSample>> ParsePrometheusAnswer(absl::string_view text) {
  const absl::StatusOr<Json> answer = kube::ParseJson(text);
  if (!answer.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the answer is not JSON: is it Prometheus? ", answer.status().message()));
  }
  if (StringAt(*answer, {"status"}) != "success") {
    const std::string error = StringAt(*answer, {"error"});
    return absl::InvalidArgumentError(absl::StrCat("Prometheus refuses the query: ",
                                                   error.empty() ? "it does not say why" : error));
  }
  const Json* result = FindPath(*answer, {"data", "result"});
  if (StringAt(*answer, {"data", "resultType"}) != "vector" || result == nullptr ||
      !result->is_array()) {
    return absl::InvalidArgumentError("the answer has no vector in data.result");
  }
  std::vector<PrometheusSample> samples;
  for (const Json& element : *result) {
    PrometheusSample sample;
    const Json* metric = Find(element, "metric");
    const Json* value = Find(element, "value");
    if (metric == nullptr || !metric->is_object() || value == nullptr || !value->is_array() ||
        value->size() != 2 || !value->back().is_string()) {
      return absl::InvalidArgumentError("an element of data.result has no metric or no value");
    }
    if (!absl::SimpleAtod(value->back().get<std::string>(), &sample.value) ||
        !std::isfinite(sample.value)) {
      continue;
    }
    for (const auto& [label, text_of] : metric->items()) {
      if (text_of.is_string()) sample.labels[label] = text_of.get<std::string>();
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::string QuotedLabel(absl::string_view value) {
  std::string quoted = "\"";
  for (const char letter : value) {
    if (letter == '"' || letter == '\\') quoted.push_back('\\');
    if (letter == '\n') {
      quoted += "\\n";
    } else {
      quoted.push_back(letter);
    }
  }
  return quoted + "\"";
}

absl::Status CheckPrometheusUrl(absl::string_view url) {
  absl::string_view rest = url;
  if ((!absl::ConsumePrefix(&rest, "http://") && !absl::ConsumePrefix(&rest, "https://")) ||
      rest.empty() || rest.front() == '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("--prometheus ", url,
                     ": give a URL such as http://127.0.0.1:9090, of a Prometheus or of a "
                     "`kubectl port-forward` to it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> AskPrometheus(const std::string& url, const std::string& query,
                                          const std::string& time) {
  const std::string base(absl::StripSuffix(url, "/"));
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  if (curl == nullptr) return absl::UnavailableError(absl::StrCat(base, ": out of memory"));
  const std::string form =
      absl::StrCat("query=", kube::Escape(query), time.empty() ? "" : "&time=", kube::Escape(time));
  const std::string path = base + "/api/v1/query";
  Body body;
  curl_easy_setopt(curl.get(), CURLOPT_URL, path.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 0L);
  // A forwarded port is of this machine, whatever proxy leads out of it.
  for (const absl::string_view local : {"//127.0.0.1", "//localhost", "//[::1]"}) {
    if (absl::StrContains(base, local)) curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  }
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, static_cast<long>(kSeconds));  // NOLINT: libcurl's
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, form.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &TakeBytes);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  const CURLcode code = curl_easy_perform(curl.get());
  if (body.too_large) {
    return absl::ResourceExhaustedError(
        absl::StrCat(base, ": the answer has more than 16 MiB; choose with -n and --job"));
  }
  if (code != CURLE_OK) {
    return absl::UnavailableError(
        absl::StrCat(base, ": ", curl_easy_strerror(code),
                     "; is Prometheus there? In a cluster: kubectl -n NAMESPACE port-forward "
                     "service/NAME 9090, and --prometheus http://127.0.0.1:9090"));
  }
  long status = 0;  // NOLINT(google-runtime-int): libcurl's type
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  // What it refuses it says in JSON.
  if (status != 200 && status != 400 && status != 422 && status != 503) {
    return absl::UnavailableError(absl::StrCat(base, ": HTTP status ", status, ", not 200"));
  }
  return std::move(body.text);
}

}  // namespace railhead::cli
