// SPDX-License-Identifier: Apache-2.0
//
// `railhead plan`: computes a gang's placement without a cluster.
#ifndef RAILHEAD_CLI_PLAN_H_
#define RAILHEAD_CLI_PLAN_H_

#include <functional>
#include <ostream>
#include <string>

#include "cli/all_reduce_plan.h"

namespace railhead::cli {

struct PlanOptions {
  std::string fabric;           // FabricModel file; "-": standard input
  std::string request;          // PlacementRequest file
  std::string replay;           // PlacementDecision file, instead of both above
  std::string save;             // file for the PlacementDecision; empty: not saved
  AllReduceOptions all_reduce;  // without sizes: nothing is estimated
  bool json = false;
  bool explain = false;
};

constexpr int kPlaced = 0;
constexpr int kBadInput = 1;  // also if a replay differs, or output cannot be written
constexpr int kNotPlaced = 2;

// Prints the result to `out` and errors, one per line, to `err`. `seconds`: monotonic clock.
// Returns the exit code.
int RunPlan(const PlanOptions& options, const std::function<double()>& seconds, std::ostream& out,
            std::ostream& err);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_PLAN_H_
