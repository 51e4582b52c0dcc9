// SPDX-License-Identifier: Apache-2.0
//
// Client of Prometheus's HTTP API.
#ifndef RAILHEAD_CLI_ACCESS_PROMETHEUS_H_
#define RAILHEAD_CLI_ACCESS_PROMETHEUS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::cli {

// An element of an instant vector.
struct PrometheusSample {
  std::map<std::string, std::string> labels;
  double value = 0;
};

// Parses the response to an instant query; drops samples whose value is not a number. Returns
// InvalidArgument for any other text, with Prometheus's message if it rejected the query.
absl::StatusOr<std::vector<PrometheusSample>> ParsePrometheusAnswer(absl::string_view text);

// Returns the value quoted and escaped for a selector.
std::string QuotedLabel(absl::string_view value);

// OK if `url` begins with http:// or https:// and has a host.
absl::Status CheckPrometheusUrl(absl::string_view url);

// Returns the response to an instant query at `time`, in seconds since 1970 (empty: now). Timeout:
// 10 s; limit: 16 MiB. Returns Unavailable with the URL if there is no response.
absl::StatusOr<std::string> AskPrometheus(const std::string& url, const std::string& query,
                                          const std::string& time);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_ACCESS_PROMETHEUS_H_
