// SPDX-License-Identifier: Apache-2.0
//
// Findings of topology discovery: faults and notes, with their text. Made by the sources and checks
// of this folder; shown by `railhead topology` and the status of the FabricTopology.
#ifndef RAILHEAD_FABRIC_DISCOVERY_FINDING_H_
#define RAILHEAD_FABRIC_DISCOVERY_FINDING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

enum class FindingKind {
  kMiswired,       // a NIC at a leaf switch of another rail, by comparison with other nodes
  kTwoLeaves,      // a node with NICs in two leaves
  kStorage,        // rails that look like NICs of storage or management
  kContradiction,  // two sources contradict each other
  kCycle,          // a cycle where a tree is expected
  kNoFacts,        // a node without facts of its agent
  kNoPlace,        // a node whose position is unknown
};

// Returns "miswired", "two-leaves", ...: for scripts.
absl::string_view FindingName(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::kMiswired;
  bool trouble = true;  // needs action; else informational
  std::string object;   // the node or switch concerned; empty: several
  std::string message;  // what, evidence, fix

  bool operator==(const Finding&) const = default;
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_FINDING_H_
