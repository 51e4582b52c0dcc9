// SPDX-License-Identifier: Apache-2.0
//
// Clusters made up for tests and benchmarks; the same numbers give the same cluster.
#ifndef RAILHEAD_PLACEMENT_TESTING_RANDOM_FABRIC_H_
#define RAILHEAD_PLACEMENT_TESTING_RANDOM_FABRIC_H_

#include <random>
#include <string>
#include <vector>

#include "fabric/model/fabric_model.h"

namespace railhead::placement::testing {

struct Shape {
  std::vector<std::string> levels = {"spine", "leaf"};
  std::vector<int> fanout = {8, 8};  // domains of the outermost level, then in each domain inwards
  int nodes_per_leaf = 16;
  int gpus = 8;  // and HCAs, and rails
  // The share of GPUs in use. It is drawn for each leaf around this value, and jobs fill nodes one
  // after the other, so that leaves differ as they do in use.
  double occupancy = 0.5;
  double partly_used = 0;    // share of nodes with some GPUs and HCAs in use
  bool told_rails = false;   // which rails of those are in use is known
  double dead_rails = 0;     // share of nodes with one or two dead rails
  double unschedulable = 0;  // share of nodes
  bool uneven = false;       // leaves have between 0 and nodes_per_leaf nodes
};

fabric::FabricModel RandomFabric(const Shape& shape, std::mt19937& random);

}  // namespace railhead::placement::testing

#endif  // RAILHEAD_PLACEMENT_TESTING_RANDOM_FABRIC_H_
