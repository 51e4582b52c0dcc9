// SPDX-License-Identifier: Apache-2.0
//
// `railhead plan --parameters`: which rails and nodes a model's gradients need.
#ifndef RAILHEAD_CLI_SIZE_PLAN_H_
#define RAILHEAD_CLI_SIZE_PLAN_H_

#include <optional>
#include <ostream>
#include <string>

#include "cli/sizing.h"

namespace railhead::cli {

struct SizePlanOptions {
  std::string parameters;      // "70B"
  double bytes_each = 2;       // of a gradient
  std::string within;          // "200ms"
  std::string fabric;          // file of a FabricModel, whose nodes are chosen; empty: none
  std::optional<int> rails;    // of a node; else the fabric's, or 8
  std::optional<double> rate;  // Gbit/s of a rail; else the fabric's linkGbps.node, or 400
  double efficiency = 0.9;
  std::optional<int> replicas;  // else as many as the nodes allow
  std::optional<int> nodes;     // else those of the fabric that are free
  bool json = false;
};

// Prints the answer with its formula to `out` and errors to `err`. Returns the exit status:
// kPlaced, kNotPlaced where there are too few nodes, kBadInput.
int RunSizePlan(const SizePlanOptions& options, std::ostream& out, std::ostream& err);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_SIZE_PLAN_H_
