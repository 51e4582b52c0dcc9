// SPDX-License-Identifier: Apache-2.0
//
// `railhead rails`: bandwidth of jobs by rail, once or continuously.
#ifndef RAILHEAD_CLI_RAILS_H_
#define RAILHEAD_CLI_RAILS_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"

namespace railhead::cli {

struct RailsOptions {
  std::string prometheus = "http://127.0.0.1:9090";
  std::string space;          // namespace; empty: all
  std::string job;            // name as in the runtime's metrics; empty: all
  std::string window = "1m";  // window of the rate
  std::string at;             // past time of the query; empty: now
  bool json = false;
  bool watch = false;
  bool clears = false;  // clears the screen before each table
};

constexpr int kRailsShown = 0;
constexpr int kRailsLost = 2;  // a rail is down, or no job sends; without Prometheus: kBadInput, 1

// Sends a query to Prometheus; returns the raw response.
using AskQuery = std::function<absl::StatusOr<std::string>(const std::string& query)>;

// Returns InvalidArgument with the option's name.
absl::Status CheckRailsOptions(const RailsOptions& options);

// Prints a table to `out`. With `watch`, repeats while `wait` returns true; if Prometheus does not
// respond, prints one line instead of the table. Returns the exit code of the last table.
int RunRails(const RailsOptions& options, const AskQuery& ask, const std::function<bool()>& wait,
             std::ostream& out, std::ostream& err);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_RAILS_H_
