// SPDX-License-Identifier: Apache-2.0
//
// `railhead plan --all-reduce`: estimates an all-reduce of a placed gang in rings, in trees and
// with SHARP (all_reduce_time.h). Pure.
#ifndef RAILHEAD_CLI_ALL_REDUCE_PLAN_H_
#define RAILHEAD_CLI_ALL_REDUCE_PLAN_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/all_reduce_time.h"
#include "fabric/model/fabric_model.h"
#include "placement/request.h"
#include "placement/solver.h"

namespace railhead::cli {

struct AllReduceOptions {
  std::vector<uint64_t> sizes;    // bytes of each all-reduce
  std::optional<double> rate;     // Gbit/s per rail; default: the fabric's linkGbps.node, or 400
  double efficiency = 0.9;        // fraction of the line rate that an all-reduce reaches
  double gpu_gbps = kNvlinkGbps;  // Gbit/s of a GPU to the others of its node
};

struct AllReducePlan {
  AllReduceCase gang;  // without bytes
  int rails = 0;       // that every node uses
  std::string limit;   // the level whose uplinks are slower than the rails of a node; mostly empty
  struct Row {
    uint64_t bytes = 0;
    AllReduceTimes times;
    std::optional<int> sharp_from;  // nodes
  };
  std::vector<Row> rows;  // in the order of the sizes
};

// Returns the estimates for a placed gang. A node has the rails that its pods get, at least those
// of the node with the fewest; uplinks of the levels that the gang crosses limit it, if the fabric
// has their rate. Returns InvalidArgument if the gang has no GPU or no HCA.
absl::StatusOr<AllReducePlan> PlanAllReduce(const fabric::FabricModel& model,
                                            const placement::PlacementRequest& request,
                                            const placement::Placement& placement,
                                            const AllReduceOptions& options);

// Formats the estimates: a table, and
//
//   {"nodes": 3, "gpusPerNode": 8, "railsPerNode": 8, "nodeBytesPerSecond": 3.6e11,
//    "gpuBytesPerSecond": 3.7e11, "limitedBy": "leaf",      # "" mostly
//    "sizes": [{"bytes": 1048576,
//               "ring": {"seconds": 0.0001, "protocol": "LL128"},
//               "tree": ..., "sharp": ...,                  # null on one node
//               "sharpFromNodes": 2}]}                      # null: never
std::string ToText(const AllReducePlan& plan);
nlohmann::ordered_json ToJson(const AllReducePlan& plan);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_ALL_REDUCE_PLAN_H_
