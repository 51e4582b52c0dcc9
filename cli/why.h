// SPDX-License-Identifier: Apache-2.0
//
// `railhead why`: explains why a job's pods do not run yet.
#ifndef RAILHEAD_CLI_WHY_H_
#define RAILHEAD_CLI_WHY_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kube/client.h"

namespace railhead::cli {

struct WhyOptions {
  std::string job;
  std::string space;               // namespace; empty: any
  std::vector<std::string> files;  // files with objects; empty: reads from the API server
  std::string decision;            // PlacementDecision file, instead of a job
  bool json = false;
};

constexpr int kRuns = 0;
constexpr int kPending = 2;  // kBadInput, 1, also if the job does not exist

// Prints the explanation to `out` and errors, one per line, to `err`. Uses `api` if there are
// neither files nor a decision. `now`: the API server's time of day; called after the last
// response. Returns the exit code.
int RunWhy(const WhyOptions& options, kube::Api* api, const std::function<absl::Time()>& now,
           std::ostream& out, std::ostream& err);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_WHY_H_
