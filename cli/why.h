// SPDX-License-Identifier: Apache-2.0
//
// `railhead why`: why a job's pods do not run yet.
#ifndef RAILHEAD_CLI_WHY_H_
#define RAILHEAD_CLI_WHY_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kube/client.h"

namespace railhead::cli {

struct WhyOptions {
  std::string job;
  std::string space;               // empty: any namespace
  std::vector<std::string> files;  // of objects; none: the API server is asked
  std::string decision;            // a PlacementDecision, instead of a job
  bool json = false;
};

constexpr int kRuns = 0;
constexpr int kPending = 2;  // kBadInput, 1, also for a job that is not there

// Prints the answer to `out` and errors, each on a line, to `err`. `api` is asked where there are
// neither files nor a decision. Returns the exit status.
int RunWhy(const WhyOptions& options, kube::Api* api, absl::Time now, std::ostream& out,
           std::ostream& err);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_WHY_H_
