// SPDX-License-Identifier: Apache-2.0
//
// Queries of Prometheus's HTTP API.
#ifndef RAILHEAD_CLI_PROMETHEUS_H_
#define RAILHEAD_CLI_PROMETHEUS_H_

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

// Reads the answer to an instant query; values that are no number are left out. InvalidArgument for
// what is not such an answer, and with Prometheus's own words where it refused the query.
absl::StatusOr<std::vector<PrometheusSample>> ParsePrometheusAnswer(absl::string_view text);

// As it stands in a selector, with its quotes.
std::string QuotedLabel(absl::string_view value);

// OK if `url` begins with http:// or https:// and has a host.
absl::Status CheckPrometheusUrl(absl::string_view url);

// The answer to an instant query, at a time in seconds since 1970; empty: now. 10 s at most, and
// 16 MiB. Unavailable with the URL where there is none.
absl::StatusOr<std::string> AskPrometheus(const std::string& url, const std::string& query,
                                          const std::string& time);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_PROMETHEUS_H_
