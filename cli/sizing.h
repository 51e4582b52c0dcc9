// SPDX-License-Identifier: Apache-2.0
//
// How many rails and nodes a model's gradients need. Pure arithmetic.
#ifndef RAILHEAD_CLI_SIZING_H_
#define RAILHEAD_CLI_SIZING_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::cli {

// n replicas of a model all-reduce its gradients. Of S bytes each replica sends 2(n-1)/n x S, and
// as much is received at the same time. A replica may be spread over several nodes (tensor and
// pipeline parallelism), each of which sends its part.
struct SizingRequest {
  double parameters = 0;
  double bytes_each = 2;    // of a gradient
  double seconds = 0;       // for the all-reduce
  int rails = 8;            // of a node
  double rail_gbps = 400;   // line rate of one of them, in one direction
  double efficiency = 0.9;  // what of it an all-reduce reaches
  // One of these may be given: how many replicas, or how many nodes there are for all of them. With
  // neither, the factor is 2, that of any number of replicas at most.
  std::optional<int> replicas = {};
  std::optional<int> nodes = {};
};

struct Sizing {
  bool fits = true;  // not: there are too few nodes for two replicas
  double gradient_bytes = 0;
  double factor = 2;                   // 2(n-1)/n
  double traffic_bytes = 0;            // of a replica
  double needed_bytes_per_second = 0;  // by a replica
  double node_bytes_per_second = 0;    // that a node has
  int nodes_per_replica = 0;           // the fewest
  int rails_per_node = 0;              // the fewest with so many nodes
  std::optional<int> replicas = {};    // as many as the nodes allow, where they are given
  std::optional<int> nodes = {};       // of all of them
  double seconds = 0;                  // with all rails of these nodes
};

Sizing Size(const SizingRequest& request);

// "70B", "1.5T", "350M" or "7e9". InvalidArgument says what is allowed.
absl::StatusOr<double> ParseParameters(absl::string_view text);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_SIZING_H_
