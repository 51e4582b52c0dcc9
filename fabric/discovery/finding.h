// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_FABRIC_DISCOVERY_FINDING_H_
#define RAILHEAD_FABRIC_DISCOVERY_FINDING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

enum class FindingKind {
  kMiswired,       // a NIC at a leaf switch where other nodes have another rail
  kTwoLeaves,      // a node whose NICs are in two leaves
  kStorage,        // NICs that look like storage's or the management network's, among the rails
  kContradiction,  // two sources that cannot both be right
  kCycle,          // a loop where a tree is expected
  kNoFacts,        // a node that its agent has told nothing of
  kNoPlace,        // a node that nobody says where it is
};

// "miswired", "two-leaves", ...: for scripts.
absl::string_view FindingName(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::kMiswired;
  bool trouble = true;  // somebody should do something; or else it is good to know
  std::string object;   // the node or switch that it is about; empty: several
  std::string message;  // what, why it is thought so, and what to do

  bool operator==(const Finding&) const = default;
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_FINDING_H_
