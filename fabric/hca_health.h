// SPDX-License-Identifier: Apache-2.0
//
// Health of an HCA: a list of faults, at most one for each stage that finds them. Plain value.
//
//   hca.health.Set(Stage::kRules, "it has no port");  // "" removes the fault
//   if (!hca.health.usable()) return hca.health.Text();
//
// Each stage sets only its own fault, so neither the start nor the end of one hides another.
#ifndef RAILHEAD_FABRIC_HCA_HEALTH_H_
#define RAILHEAD_FABRIC_HCA_HEALTH_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

// Stages, the gravest first: what makes the rest irrelevant, then faults, then what ends without a
// repair. This order is the only definition of gravity.
enum class Stage {
  kMissing,        // it has disappeared
  kHang,           // reading it does not end, so its state is old
  kIdentity,       // a pod may hold it under another name
  kRules,          // faults of the device itself: role, ports, device nodes, addresses
  kSharedAddress,  // another HCA has the same address
  kSymbolErrors,   // its link is noisy
  kRenumbering,    // a container has device nodes that are now those of another HCA
  kFlapDamping,    // it failed, and is offered again later
  kAssignment,     // a pod holds it by an earlier configuration
};

// Returns the stage's name in JSON and metrics: "shared-address".
absl::string_view ToString(Stage stage);

class Health {
 public:
  // Replaces the fault of the stage, or removes it if `text` is "". `text`: why the HCA cannot be
  // used, and the fix.
  void Set(Stage stage, std::string text);

  bool usable() const { return troubles_.empty(); }
  bool Has(Stage stage) const { return troubles_.contains(stage); }
  // Texts by stage, the gravest first.
  const std::map<Stage, std::string>& troubles() const { return troubles_; }

  // Returns the text of the gravest fault; "" if usable.
  std::string reason() const { return usable() ? "" : troubles_.begin()->second; }
  // Returns all texts, the gravest first, separated by "; "; "" if usable.
  std::string Text() const;

  bool operator==(const Health&) const = default;

 private:
  std::map<Stage, std::string> troubles_;
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_HCA_HEALTH_H_
