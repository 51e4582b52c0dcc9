// SPDX-License-Identifier: Apache-2.0
//
// Names of what the node agent publishes about its node, and the operator reads.
#ifndef RAILHEAD_FABRIC_NODE_FACTS_NAMES_H_
#define RAILHEAD_FABRIC_NODE_FACTS_NAMES_H_

namespace railhead::fabric {

// JSON: writer.h writes it, reader.h reads it.
inline constexpr char kNodeFactsAnnotation[] = "railhead.io/node-facts";
// Rails of HCAs that containers hold, as in "0,1,4", while some are held and others are free. Apart
// from the facts, because it changes with every pod that holds a part of a node.
inline constexpr char kRailsInUseAnnotation[] = "railhead.io/rails-in-use";

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_NODE_FACTS_NAMES_H_
