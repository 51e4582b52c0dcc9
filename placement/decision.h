// SPDX-License-Identifier: Apache-2.0
//
// A placement decision as a file: request and result, for replay on any machine.
#ifndef RAILHEAD_PLACEMENT_DECISION_H_
#define RAILHEAD_PLACEMENT_DECISION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/model/fabric_model.h"
#include "placement/request.h"

namespace railhead::placement {

struct Decision {
  fabric::FabricModel fabric;
  PlacementRequest request;
  std::vector<std::string> nodes;  // node name by rank; empty: not placed

  bool operator==(const Decision&) const = default;
};

// Returns JSON: {"apiVersion": "railhead.io/v1alpha1", "kind": "PlacementDecision", "metadata":
// {"name": name of the request}, "fabric": a FabricModel, "request": a PlacementRequest, "nodes":
// [...]}. One line with a line break at its end.
std::string ToJson(const Decision& decision);

// Parses the output of ToJson, or the equivalent YAML. Returns InvalidArgument if a part is
// invalid, if the fabric lacks one of the nodes, or if `nodes` is not empty and its length is not
// the number of pods.
absl::StatusOr<Decision> ParseDecision(absl::string_view text, absl::string_view source);

// Describes the first difference between a result and the saved one, for a message. Empty if they
// are equal.
std::string Difference(const Decision& saved, const std::vector<std::string>& nodes);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_DECISION_H_
