// SPDX-License-Identifier: Apache-2.0
//
// Reads the annotation railhead.io/node-facts, which writer.h writes. Used by the diagnosis of
// jobs, gangs, the topology and `railhead topology`. Pure.
#ifndef RAILHEAD_FABRIC_NODE_FACTS_READER_H_
#define RAILHEAD_FABRIC_NODE_FACTS_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/node_facts/names.h"
#include "fabric/node_facts/seen_rail.h"

namespace railhead::fabric {

struct NodeFacts {
  std::vector<SeenRail> rails;  // in the order of their numbers
  int gpus = 0;
  std::string gpu_direct_trouble;  // why HCAs do not reach the GPUs' memory; "" if they do
};

// Reads version 1. Messages begin with `source`, the name of the text, and name the field. Returns
// InvalidArgument for rails outside of 0 to kHighestRail, for a rail that appears twice, and for
// more than the 256 KiB that annotations can have.
absl::StatusOr<NodeFacts> ReadNodeFacts(absl::string_view text, absl::string_view source);

// Reads the annotation of rails in use: ascending, each once. Returns an empty list for a malformed
// text: the rails in use are unknown then.
std::vector<int> ReadRailsInUse(absl::string_view text);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_NODE_FACTS_READER_H_
