// SPDX-License-Identifier: Apache-2.0
//
// A fabric as other schedulers take it: labels of nodes, and the objects that name these labels.
// Pure: whoever calls writes them.
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

// Who says what is published: server-side apply tells by it what is ours.
inline constexpr char kManager[] = "railhead-topology";

// What the names of the labels begin with that say where a node is.
inline constexpr char kLabelPrefix[] = "railhead.io/topology-";

// Of objects that are made of a fabric: its name. Those with it that are not among what is
// published now are of a fabric that was, and can be removed.
inline constexpr char kOfTopology[] = "railhead.io/topology";

struct PlaceLabels {
  // railhead.io/topology-<level> of each level, outermost first, and railhead.io/topology-node.
  // They are not the labels that discovery reads: what was found once must not prove itself.
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> values;  // [node of the model][key]
  bool in_order = true;  // sorting nodes by their values gives the model's order
};

// Values are PlaceValue of the names of domains and of the node, so they sort in natural order of
// names, as discovered models are; and they depend on the names of the node's own domains alone.
//
// InvalidArgument: a level whose name no label can have, more levels than a Topology can have, or
// two domains (or nodes) whose values would be the same. The message names them.
absl::StatusOr<PlaceLabels> LabelsOfPlaces(const fabric::FabricModel& model);

// The labels of a node of the model by its name.
std::map<std::string, std::map<std::string, std::string>> LabelsByNode(
    const fabric::FabricModel& model, const PlaceLabels& labels);

// A Node with these labels alone, to be applied as one of NodesWithLabels.
OrderedJson NodeWithLabels(const std::string& name, const std::string& uid,
                           const std::map<std::string, std::string>& labels);

// A List of Nodes with these labels alone, for `kubectl apply --server-side` under a field manager
// that has no other fields. `uid_of_node` are the Nodes that there are, and nobody else is in it:
// one that has gone in the meantime is a conflict then, and is not made anew. A Node without a
// place has no labels, so that those that it got earlier are taken from it.
OrderedJson NodesWithLabels(const fabric::FabricModel& model, const PlaceLabels& labels,
                            const std::map<std::string, std::string>& uid_of_node);

// Kueue (kueue.x-k8s.io/v1beta2, from 0.15 on; levels can never be changed) gives ranks in the
// order of the values of all levels, but compares hostnames of one parent as texts, where n10 comes
// before n2. So the node's own label stands between leaf and hostname.
OrderedJson KueueTopology(const fabric::FabricModel& model, const PlaceLabels& labels);

// KAI (kai.scheduler/v1alpha1, from 0.12 on).
OrderedJson KaiTopology(const fabric::FabricModel& model, const PlaceLabels& labels);

// Volcano (topology.volcano.sh/v1alpha1, from 1.11 on): a List of a HyperNode for each domain, of
// tier 1 for leaves. Members are named, so that it needs no labels, and any model can be one.
OrderedJson VolcanoHyperNodes(const fabric::FabricModel& model);

}  // namespace railhead::topology

#endif  // RAILHEAD_PLACEMENT_TOPOLOGY_PUBLISHED_H_
