// SPDX-License-Identifier: Apache-2.0
//
// A fabric in the form that other schedulers read: node labels, and objects that refer to these
// labels. Pure; the caller writes them.
#ifndef RAILHEAD_PLACEMENT_TOPOLOGY_PUBLISHED_H_
#define RAILHEAD_PLACEMENT_TOPOLOGY_PUBLISHED_H_

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/model/fabric_model.h"

namespace railhead::topology {

using OrderedJson = nlohmann::ordered_json;

// Field manager of the published labels and objects, by which server-side apply identifies them.
inline constexpr char kManager[] = "railhead-topology";

// Prefix of the labels that give a node's place.
inline constexpr char kLabelPrefix[] = "railhead.io/topology-";

// Label of objects created from a fabric; the value is the fabric's name. Objects with this label
// that are not currently published belong to an older fabric and may be removed.
inline constexpr char kOfTopology[] = "railhead.io/topology";

struct PlaceLabels {
  // railhead.io/topology-<level> for each level, outermost first, and railhead.io/topology-node.
  // Discovery reads other labels, so its result cannot confirm itself.
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> values;  // [node of the model][key]
  bool in_order = true;                          // sorting nodes by value gives the model's order
};

// Returns the labels of all nodes. Values are PlaceValue of the names of the node and its domains.
// They sort in the natural order of names, as discovered models do, and do not depend on other
// domains.
//
// Returns InvalidArgument, with the names concerned, if a level's name is not valid in a label, if
// there are more levels than a Topology allows, or if two domains or nodes would have equal values.
absl::StatusOr<PlaceLabels> LabelsOfPlaces(const fabric::FabricModel& model);

// Returns the labels of each node, by name.
std::map<std::string, std::map<std::string, std::string>> LabelsByNode(
    const fabric::FabricModel& model, const PlaceLabels& labels);

// Returns a Node with these labels only, to be applied like those of NodesWithLabels.
OrderedJson NodeWithLabels(const std::string& name, const std::string& uid,
                           const std::map<std::string, std::string>& labels);

// Returns a List of Nodes with these labels only, for `kubectl apply --server-side` with a field
// manager that owns no other fields. It contains exactly the Nodes in `uid_of_node`. The UID makes
// a deleted node a conflict instead of a new object. A Node without a place has no labels, so
// applying removes those it got earlier.
OrderedJson NodesWithLabels(const fabric::FabricModel& model, const PlaceLabels& labels,
                            const std::map<std::string, std::string>& uid_of_node);

// Returns a Topology of Kueue (kueue.x-k8s.io/v1beta2, since 0.15; levels are immutable). Kueue
// assigns ranks in the order of the values of all levels, but compares hostnames of one parent as
// text: n10 before n2. Therefore the node's own label is a level between leaf and hostname.
OrderedJson KueueTopology(const fabric::FabricModel& model, const PlaceLabels& labels);

// Returns a Topology of KAI (kai.scheduler/v1alpha1, since 0.12).
OrderedJson KaiTopology(const fabric::FabricModel& model, const PlaceLabels& labels);

// Returns a List of HyperNodes of Volcano (topology.volcano.sh/v1alpha1, since 1.11): one per
// domain, tier 1 for leaves. Members are listed by name, so this needs no labels and works for any
// model.
OrderedJson VolcanoHyperNodes(const fabric::FabricModel& model);

}  // namespace railhead::topology

#endif  // RAILHEAD_PLACEMENT_TOPOLOGY_PUBLISHED_H_
