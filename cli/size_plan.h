// SPDX-License-Identifier: Apache-2.0
//
// `railhead plan --parameters`: computes the rails and nodes that a model's gradients need.
#ifndef RAILHEAD_CLI_SIZE_PLAN_H_
#define RAILHEAD_CLI_SIZE_PLAN_H_

#include <optional>
#include <ostream>
#include <string>

#include "cli/sizing.h"

namespace railhead::cli {

struct SizePlanOptions {
  std::string parameters;      // "70B"
  double bytes_each = 2;       // per gradient
  std::string within;          // "200ms"
  std::string fabric;          // FabricModel file, to choose nodes from; empty: none
  std::optional<int> rails;    // per node; default: the fabric's, or 8
  std::optional<double> rate;  // Gbit/s per rail; default: linkGbps.node, or 400
  double efficiency = 0.9;
  std::optional<int> replicas;  // default: as many as the nodes allow
  std::optional<int> nodes;     // default: the fabric's free nodes
  bool json = false;
};

// Prints result and formula to `out` and errors to `err`. Returns the exit code: kPlaced,
// kNotPlaced if there are too few nodes, or kBadInput.
int RunSizePlan(const SizePlanOptions& options, std::ostream& out, std::ostream& err);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_SIZE_PLAN_H_
