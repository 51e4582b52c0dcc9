// SPDX-License-Identifier: Apache-2.0
//
// The annotation railhead.io/node-facts, in which the node agent tells of its node's rails.
#ifndef RAILHEAD_FABRIC_DISCOVERY_NODE_FACTS_READER_H_
#define RAILHEAD_FABRIC_DISCOVERY_NODE_FACTS_READER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

inline constexpr char kNodeFactsAnnotation[] = "railhead.io/node-facts";
// Beside it, as long as containers hold some of the node's HCAs, but not all: their rails, as in
// "0,1,4". It is not in the facts, as it changes with every pod that holds a part of a node.
inline constexpr char kRailsInUseAnnotation[] = "railhead.io/rails-in-use";

struct NodeFacts {
  std::vector<SeenRail> rails;  // in the order of their numbers
  int gpus = 0;
};

// Reads version 1. `source` is what the text is called in messages, which name the field as well;
// InvalidArgument for rails out of 0 to 63, for a rail that is there twice, and
// for more than the 256 KiB that annotations can have.
absl::StatusOr<NodeFacts> ReadNodeFacts(absl::string_view text, absl::string_view source);

// Rails from 0 to 63, ascending, each once. None for a text that is anything else: then which are
// in use is not known.
std::vector<int> ReadRailsInUse(absl::string_view text);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_NODE_FACTS_READER_H_
