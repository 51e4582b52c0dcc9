// SPDX-License-Identifier: Apache-2.0
//
// A fabric as it was built, and what each source would print of it.
#ifndef RAILHEAD_FABRIC_TESTING_BUILT_FABRIC_H_
#define RAILHEAD_FABRIC_TESTING_BUILT_FABRIC_H_

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fabric/model/fabric_model.h"

namespace railhead::fabric {

struct BuiltNode {
  std::string name;
  std::vector<std::string> switches;  // where the cable of each rail leads; "" for a dead rail
};

struct BuiltFabric {
  FabricModel model;                                         // what should be found
  std::vector<BuiltNode> nodes;                              // in the model's order
  std::vector<std::pair<std::string, std::string>> uplinks;  // between switches
};

// One to three pods of leaves and spines, joined by cores where there are several; fat-tree or
// rail-optimized, with a few dead rails.
BuiltFabric RandomFabric(std::mt19937& random);

std::string AsIbnetdiscover(const BuiltFabric& fabric, std::mt19937& random);
// A list of texts: one of each node and switch.
std::vector<std::string> AsLldp(const BuiltFabric& fabric, std::mt19937& random);
std::string AsKubernetes(const BuiltFabric& fabric, bool labels, std::mt19937& random);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_TESTING_BUILT_FABRIC_H_
