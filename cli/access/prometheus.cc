// SPDX-License-Identifier: Apache-2.0
#include "cli/access/prometheus.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/http/http_fetch.h"
#include "kube/json.h"

namespace railhead::cli {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr size_t kMostBytes = size_t{16} << 20U;
constexpr absl::Duration kTimeout = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::vector<PrometheusSample>> ParsePrometheusAnswer(absl::string_view text) {
  const absl::StatusOr<Json> answer = kube::ParseJson(text);
  if (!answer.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the response is not JSON; check that the URL is that of Prometheus: ",
                     answer.status().message()));
  }
  if (StringAt(*answer, {"status"}) != "success") {
    const std::string error = StringAt(*answer, {"error"});
    return absl::InvalidArgumentError(
        absl::StrCat("Prometheus rejects the query: ", error.empty() ? "no cause given" : error));
  }
  const Json* result = FindPath(*answer, {"data", "result"});
  if (StringAt(*answer, {"data", "resultType"}) != "vector" || result == nullptr ||
      !result->is_array()) {
    return absl::InvalidArgumentError("the response has no vector in data.result");
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
  // 400, 422, 503: an error, as JSON.
  kube::FetchRequest request{.url = base + "/api/v1/query",
                             .form = absl::StrCat("query=", kube::Escape(query),
                                                  time.empty() ? "" : "&time=", kube::Escape(time)),
                             .expected = {200, 400, 422, 503},
                             .use_proxy = true,
                             .timeout = kTimeout};
  // A forwarded port is on this machine, so no proxy is needed.
  for (const absl::string_view local : {"//127.0.0.1", "//localhost", "//[::1]"}) {
    if (absl::StrContains(base, local)) request.use_proxy = false;
  }
  std::string body;
  absl::Status fetched = kube::Fetch(request, [&](absl::string_view bytes) {
    if (body.size() + bytes.size() > kMostBytes) {
      return absl::ResourceExhaustedError(
          "the response has more than 16 MiB; select with -n and --job");
    }
    body.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  });
  if (fetched.ok()) return body;
  if (absl::IsResourceExhausted(fetched)) return fetched;
  return absl::UnavailableError(
      absl::StrCat(fetched.message(),
                   "; check the URL of Prometheus. In a cluster: kubectl -n NAMESPACE port-forward "
                   "service/NAME 9090, and --prometheus http://127.0.0.1:9090"));
}

}  // namespace railhead::cli
