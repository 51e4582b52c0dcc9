// SPDX-License-Identifier: Apache-2.0
//
// Number of rails and nodes that a model's gradients need. Pure arithmetic.
#ifndef RAILHEAD_CLI_SIZING_H_
#define RAILHEAD_CLI_SIZING_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::cli {

// n replicas of a model all-reduce its gradients of S bytes. Each replica sends 2(n-1)/n x S bytes
// and receives as many at the same time. A replica may span several nodes (tensor and pipeline
// parallelism); each node sends its part.
struct SizingRequest {
  double parameters = 0;
  double bytes_each = 2;    // per gradient
  double seconds = 0;       // time limit of the all-reduce
  int rails = 8;            // per node
  double rail_gbps = 400;   // line rate of one rail, in one direction
  double efficiency = 0.9;  // fraction of the line rate that an all-reduce reaches
  // At most one of these is set: number of replicas, or number of nodes for all replicas. Without
  // either the factor is 2, the upper bound for any number of replicas.
  std::optional<int> replicas = {};
  std::optional<int> nodes = {};
};

struct Sizing {
  // False: too few nodes for two replicas, or a billion nodes or more.
  bool fits = true;
  double gradient_bytes = 0;
  double factor = 2;                   // 2(n-1)/n
  double traffic_bytes = 0;            // per replica
  double needed_bytes_per_second = 0;  // per replica
  double node_bytes_per_second = 0;    // available per node
  int nodes_per_replica = 0;           // minimum
  int rails_per_node = 0;              // minimum for nodes_per_replica nodes
  std::optional<int> replicas = {};    // if nodes are given: as many as these allow
  std::optional<int> nodes = {};       // of all replicas
  double seconds = 0;                  // with all rails of these nodes
};

Sizing Size(const SizingRequest& request);

// Parses "70B", "1.5T", "350M" or "7e9". Returns InvalidArgument with the allowed forms.
absl::StatusOr<double> ParseParameters(absl::string_view text);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_SIZING_H_
