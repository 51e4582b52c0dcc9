// SPDX-License-Identifier: Apache-2.0
//
// A decision as a file: the question and the answer, to be asked again anywhere.
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
  std::vector<std::string> nodes;  // the node's name of each rank; empty: it was not placed

  bool operator==(const Decision&) const = default;
};

// JSON: {"apiVersion": "railhead.io/v1alpha1", "kind": "PlacementDecision", "metadata": {"name":
// the request's}, "fabric": a FabricModel, "request": a PlacementRequest, "nodes": [...]}. On one
// line, ended by a line break.
std::string ToJson(const Decision& decision);

// Reads that, or the same in YAML. InvalidArgument as for its parts, and for nodes that the fabric
// does not have or that are neither none nor one for each pod.
absl::StatusOr<Decision> ParseDecision(absl::string_view text, absl::string_view source);

// Where an answer differs from the saved one, for a message; empty when it does not.
std::string Difference(const Decision& saved, const std::vector<std::string>& nodes);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_DECISION_H_
