// SPDX-License-Identifier: Apache-2.0
//
// `railhead rails`: the bandwidth of jobs by rail, once or live.
#ifndef RAILHEAD_CLI_RAILS_H_
#define RAILHEAD_CLI_RAILS_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"

namespace railhead::cli {

struct RailsOptions {
  std::string prometheus = "http://127.0.0.1:9090";
  std::string space;          // empty: all namespaces
  std::string job;            // as the runtime names it; empty: all
  std::string window = "1m";  // over which the rate is taken
  std::string at;             // a time of the past; empty: now
  bool json = false;
  bool watch = false;
  bool clears = false;  // the screen before each table
};

constexpr int kRailsShown = 0;
constexpr int kRailsLost = 2;  // a rail is lost, or no job sends; kBadInput, 1, without Prometheus

// Asks Prometheus a query; returns its answer as it came.
using AskQuery = std::function<absl::StatusOr<std::string>(const std::string& query)>;

// InvalidArgument names the option.
absl::Status CheckRailsOptions(const RailsOptions& options);

// Prints a table to `out`; with `watch` again each time that `wait` returns true, and a Prometheus
// that does not answer then is a line in the table's place. Returns the exit status, of the last
// table.
int RunRails(const RailsOptions& options, const AskQuery& ask, const std::function<bool()>& wait,
             std::ostream& out, std::ostream& err);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_RAILS_H_
