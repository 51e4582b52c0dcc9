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
  std::vector<int> nics;              // which number the NIC of each rail has in its name
};

struct BuiltFabric {
  FabricModel model;                                         // what should be found
  std::vector<BuiltNode> nodes;                              // in the model's order
  std::vector<std::pair<std::string, std::string>> uplinks;  // between switches
};

// One to three pods of leaves and spines, joined by cores where there are several; fat-tree or
// rail-optimized, with a few dead rails.
BuiltFabric RandomFabric(std::mt19937& random);

// Makes machines of another kind of some nodes: with half of the NICs, at some of the leaf's
// switches. At least three of each leaf stay.
void AddSmallerKind(BuiltFabric& fabric, std::mt19937& random);
// Gives the NICs of each kind names in another order than that of its rails.
void RenameNics(BuiltFabric& fabric, std::mt19937& random);

std::string AsIbnetdiscover(const BuiltFabric& fabric, std::mt19937& random);
// A list of texts: one of each node and switch.
std::vector<std::string> AsLldp(const BuiltFabric& fabric, std::mt19937& random);
// `silent`: agents that tell nothing, but on the first three nodes of each leaf.
std::string AsKubernetes(const BuiltFabric& fabric, bool labels, std::mt19937& random,
                         bool silent = false);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_TESTING_BUILT_FABRIC_H_
