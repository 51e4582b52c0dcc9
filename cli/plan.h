// SPDX-License-Identifier: Apache-2.0
//
// `railhead plan`: where a gang would go, without a cluster.
#ifndef RAILHEAD_CLI_PLAN_H_
#define RAILHEAD_CLI_PLAN_H_

#include <functional>
#include <ostream>
#include <string>

namespace railhead::cli {

struct PlanOptions {
  std::string fabric;   // file of a FabricModel; "-" is standard input
  std::string request;  // file of a PlacementRequest
  std::string replay;   // file of a PlacementDecision, instead of these two
  std::string save;     // where to write one; empty: nowhere
  bool json = false;
  bool explain = false;
};

constexpr int kPlaced = 0;
constexpr int kBadInput = 1;  // also a replay whose answer differs, and what cannot be written
constexpr int kNotPlaced = 2;

// Prints the answer to `out` and errors, each on a line, to `err`. `seconds` is a clock that only
// goes forward. Returns the exit status.
int RunPlan(const PlanOptions& options, const std::function<double()>& seconds, std::ostream& out,
            std::ostream& err);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_PLAN_H_
