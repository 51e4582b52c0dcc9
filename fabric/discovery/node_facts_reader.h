// SPDX-License-Identifier: Apache-2.0
//
// Reader of the annotation railhead.io/node-facts, in which the node agent publishes its node's
// rails.
#ifndef RAILHEAD_FABRIC_DISCOVERY_NODE_FACTS_READER_H_
#define RAILHEAD_FABRIC_DISCOVERY_NODE_FACTS_READER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

inline constexpr char kNodeFactsAnnotation[] = "railhead.io/node-facts";
// Present while containers hold some, but not all, of the node's HCAs: their rails, as in "0,1,4".
// Separate from the facts, because it changes with every pod that holds part of a node.
inline constexpr char kRailsInUseAnnotation[] = "railhead.io/rails-in-use";

struct NodeFacts {
  std::vector<SeenRail> rails;  // in order of their numbers
  int gpus = 0;
};

// Reads version 1. `source` is the name of the text in messages, which also name the field.
// InvalidArgument for rails outside 0 to 63, duplicate rails, and more than 256 KiB, the limit of
// annotations.
absl::StatusOr<NodeFacts> ReadNodeFacts(absl::string_view text, absl::string_view source);

// Returns rails from 0 to 63, ascending, unique. Empty for any other text: the rails in use are
// unknown then.
std::vector<int> ReadRailsInUse(absl::string_view text);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_NODE_FACTS_READER_H_
