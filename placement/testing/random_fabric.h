// SPDX-License-Identifier: Apache-2.0
//
// Random clusters for tests and benchmarks. Equal seeds give equal clusters.
#ifndef RAILHEAD_PLACEMENT_TESTING_RANDOM_FABRIC_H_
#define RAILHEAD_PLACEMENT_TESTING_RANDOM_FABRIC_H_

#include <random>
#include <string>
#include <vector>

#include "fabric/model/fabric_model.h"

namespace railhead::placement::testing {

struct Shape {
  std::vector<std::string> levels = {"spine", "leaf"};
  std::vector<int> fanout = {8, 8};  // domains of the outermost level, then per domain inwards
  int nodes_per_leaf = 16;
  int gpus = 8;  // also the number of HCAs and of rails
  // Fraction of GPUs in use. Drawn for each leaf around this value; jobs fill nodes one after the
  // other, so leaves differ as in practice.
  double occupancy = 0.5;
  double partly_used = 0;    // fraction of nodes with some GPUs and HCAs in use
  bool told_rails = false;   // it is known which rails of those are in use
  double dead_rails = 0;     // fraction of nodes with one or two dead rails
  double unschedulable = 0;  // fraction of nodes
  bool uneven = false;       // leaves have 0 to nodes_per_leaf nodes
};

fabric::FabricModel RandomFabric(const Shape& shape, std::mt19937& random);

}  // namespace railhead::placement::testing

#endif  // RAILHEAD_PLACEMENT_TESTING_RANDOM_FABRIC_H_
