// SPDX-License-Identifier: Apache-2.0
#include "cli/topology.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/document_error.h"
#include "base/file.h"
#include "base/finding.h"
#include "base/json/json_text.h"
#include "base/printable_text.h"
#include "cli/access/cluster.h"
#include "cli/output/files.h"
#include "cli/topology_svg.h"
#include "cli/topology_tree.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/fusion.h"
#include "fabric/discovery/kubernetes_reader.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/offers.h"
#include "fabric/discovery/source.h"
#include "fabric/model/fabric_model.h"
#include "fabric/model/model_json.h"
#include "fabric/model/model_reader.h"
#include "fabric/model/model_yaml.h"
#include "kube/client.h"
#include "kube/json.h"
#include "operator/objects/rdma_resources.h"
#include "placement/topology/cluster_fabric.h"
#include "placement/topology/published.h"
#include "placement/topology/stored_topology.h"

namespace railhead::cli {
namespace {

using fabric::DiscoveredFabric;
using OrderedJson = nlohmann::ordered_json;

bool IsModel(absl::string_view text) {
  const absl::string_view begin = text.substr(0, 4096);
  return absl::StrContains(begin, "kind: FabricModel") ||
         absl::StrContains(begin, "\"FabricModel\"");
}

DiscoveredFabric Known(fabric::FabricModel model) {
  DiscoveredFabric known;
  for (const fabric::FabricNode& node : model.nodes) {
    known.wires.push_back(fabric::WiresOf(node, model.rails));
  }
  known.model = std::move(model);
  return known;
}

struct Loaded {
  DiscoveredFabric found;
  std::vector<fabric::SeenNode> nodes;  // as Kubernetes lists them
};

void CountUses(const fabric::Observations& seen, fabric::FabricModel& model) {
  std::map<std::string, fabric::SeenUse> by_node;
  for (const fabric::SeenUse& use : seen.uses) {
    by_node[use.node].gpus += use.gpus;
    by_node[use.node].hcas += use.hcas;
  }
  std::map<std::string, int> offered;  // HCAs or shares
  for (const fabric::SeenNode& node : seen.nodes) offered[node.name] = node.hcas;
  for (fabric::FabricNode& node : model.nodes) {
    const fabric::SeenUse& use = by_node[node.name];
    node.used_gpus = std::min(use.gpus, node.gpus);
    node.used_hcas = fabric::UsedHcas(node, offered[node.name], use.hcas);
  }
}

// Adds the object's name, which a fault omits if there is only one.
std::string Named(absl::string_view fault) {
  return absl::StartsWith(fault, topology::kTopologyKind)
             ? std::string(fault)
             : absl::StrCat("FabricTopology ", topology::kTopologyName, ": ", fault);
}

// Reads nodes and pods. Each object is dropped when it is read: all of a large cluster are more
// than memory should hold.
absl::StatusOr<fabric::Observations> Observe(kube::Api& api) {
  const absl::StatusOr<op::RdmaResources> rdma = AskRdmaResources(api);
  if (!rdma.ok()) return rdma.status();
  const fabric::IsHca is_hca = [&rdma](absl::string_view resource) {
    return rdma->Contains(resource);
  };
  fabric::Observations seen;
  const auto read = [&](const kube::Json& object) -> absl::Status {
    const std::string space = kube::StringAt(object, {"metadata", "namespace"});
    const std::string source =
        absl::StrCat(kube::StringAt(object, {"kind"}), " ", space, space.empty() ? "" : "/",
                     kube::StringAt(object, {"metadata", "name"}));
    absl::StatusOr<fabric::Observations> more =
        fabric::ReadSource(kube::DumpJson(object), source, is_hca);
    if (!more.ok()) return more.status();
    fabric::Append(*std::move(more), seen);
    return absl::OkStatus();
  };
  absl::Status status = ForEachWithKind(api, {"v1", "nodes", "", ""}, "Node", read);
  if (status.ok()) status = ForEachWithKind(api, {"v1", "pods", "", ""}, "Pod", read);
  if (!status.ok()) return status;
  return seen;
}

// Reads the fabric from the API server, as the operator does.
absl::StatusOr<Loaded> Ask(kube::Api& api, const std::optional<std::string>& name) {
  const absl::StatusOr<std::vector<kube::Json>> topologies = AskTopologies(api);
  if (!topologies.ok()) return topologies.status();
  std::vector<topology::ModelPart> parts;
  for (const kube::Json& object : *topologies) {
    if (auto part = topology::ReadModelPart(object)) parts.push_back(*std::move(part));
  }
  const auto given = topology::JoinModel(std::move(parts));
  absl::StatusOr<fabric::Observations> seen = Observe(api);
  if (!seen.ok()) return seen.status();
  if (!given.ok() || !given->has_value()) {
    absl::StatusOr<DiscoveredFabric> found =
        fabric::FuseObservations(*seen, name.value_or("cluster"));
    if (!found.ok() && !given.ok()) {
      return absl::Status(found.status().code(),
                          absl::StrCat(Named(given.status().message()),
                                       "; and without it: ", found.status().message()));
    }
    if (!found.ok()) return found.status();
    if (!given.ok()) {
      found->findings.insert(
          found->findings.begin(),
          {Severity::kFail, fabric::kContradiction,
           absl::StrCat("FabricTopology ", topology::kTopologyName),
           absl::StrCat(given.status().message(),
                        "; until it is corrected, labels determine where nodes are"),
           "correct this field of the FabricTopology"});
    }
    return Loaded{*std::move(found), std::move(seen->nodes)};
  }
  absl::StatusOr<topology::ClusterFabric> fabric = topology::FindFabric(seen->nodes, *given);
  if (!fabric.ok()) return fabric.status();
  if (name.has_value()) fabric->found.model.name = *name;
  CountUses(*seen, fabric->found.model);
  return Loaded{std::move(fabric->found), std::move(seen->nodes)};
}

absl::StatusOr<Loaded> Load(const TopologyOptions& options, kube::Api* api) {
  if (options.name.has_value()) {
    if (const auto fault = NameFault(*options.name)) {
      return absl::InvalidArgumentError(absl::StrCat("--name: ", *fault));
    }
  }
  if (options.files.empty()) return Ask(*api, options.name);
  fabric::Observations seen;
  for (const std::string& file : options.files) {
    const absl::StatusOr<std::string> text = ReadInput(file, kMaxJsonText);
    if (absl::IsInvalidArgument(text.status())) {
      return absl::InvalidArgumentError(absl::StrCat(
          text.status().message(),
          "; split it: give nodes, and the pods of each namespace, in separate files (or give "
          "no file, and the cluster is asked)"));
    }
    if (!text.ok()) return text.status();
    if (IsModel(*text)) {
      if (options.files.size() > 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            file,
            ": a FabricModel describes a whole fabric; give it alone, or give only its sources"));
      }
      absl::StatusOr<fabric::FabricModel> model = fabric::ParseFabricModel(*text, file);
      if (!model.ok()) return model.status();
      if (options.name.has_value()) model->name = *options.name;
      return Loaded{Known(*std::move(model)), {}};
    }
    absl::StatusOr<fabric::Observations> more = fabric::ReadSource(*text, file);
    if (!more.ok()) return more.status();
    fabric::Append(*std::move(more), seen);
  }
  absl::StatusOr<DiscoveredFabric> found =
      fabric::FuseObservations(seen, options.name.value_or("discovered"));
  if (!found.ok()) return found.status();
  return Loaded{*std::move(found), std::move(seen.nodes)};
}

// Applying an absent Node would create it, so only nodes that Kubernetes lists get labels, with
// their UIDs.
absl::StatusOr<std::map<std::string, std::string>> UidsOf(
    const std::vector<fabric::SeenNode>& nodes) {
  constexpr char kAdvice[] =
      "add the unchanged output of `kubectl get nodes,pods -A -o json` as a source (a FabricModel "
      "does not list the nodes that still exist)";
  if (nodes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("-o labels: no source lists the nodes of Kubernetes, and labels of other "
                     "nodes would create nodes; ",
                     kAdvice));
  }
  std::map<std::string, std::string> uids;
  for (const fabric::SeenNode& node : nodes) {
    if (node.uid.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          node.where, ": node ", node.name,
          " has no metadata.uid, without which its labels could recreate a deleted node; ",
          kAdvice));
    }
    uids.emplace(node.name, node.uid);
  }
  return uids;
}

OrderedJson ToJson(const DiscoveredFabric& found) {
  OrderedJson findings = OrderedJson::array();
  for (const Finding& finding : found.findings) {
    OrderedJson& entry = findings.emplace_back(ToJson(finding));
    entry["kind"] = finding.check;
    entry["trouble"] = finding.severity == Severity::kFail;
    entry["message"] = FindingLine(finding);
  }
  OrderedJson wires = OrderedJson::array();
  for (size_t node = 0; node < found.wires.size(); ++node) {
    for (const fabric::RailWire& wire : found.wires[node]) {
      wires.push_back({{"node", found.model.nodes[node].name},
                       {"rail", wire.rail},
                       {"nic", wire.nic},
                       {"switch", wire.at},
                       {"port", wire.port},
                       {"gbps", wire.gbps},
                       {"dead", wire.dead},
                       {"miswired", wire.miswired}});
    }
  }
  return {{"fabric", fabric::ToJson(found.model)}, {"wires", wires}, {"findings", findings}};
}

// Returns the fabric in the format of another scheduler.
absl::StatusOr<OrderedJson> Published(const Loaded& loaded, absl::string_view output,
                                      std::ostream& err) {
  const fabric::FabricModel& model = loaded.found.model;
  if (output == "volcano") return topology::VolcanoHyperNodes(model);
  const absl::StatusOr<topology::PlaceLabels> labels = topology::LabelsOfPlaces(model);
  if (!labels.ok()) return labels.status();
  OrderedJson published;
  if (output == "labels") {
    const auto uids = UidsOf(loaded.nodes);
    if (!uids.ok()) return uids.status();
    published = topology::NodesWithLabels(model, *labels, *uids);
  } else {
    published = output == "kueue" ? topology::KueueTopology(model, *labels)
                                  : topology::KaiTopology(model, *labels);
  }
  if (!labels->in_order) {
    err << "note: order: the labels sort by name, not in the model's order\n";
  }
  return published;
}

bool IsPublished(absl::string_view output) {
  return output == "labels" || output == "kueue" || output == "kai" || output == "volcano";
}

std::string Shown(const DiscoveredFabric& found, absl::string_view output) {
  if (output == "yaml") return fabric::ToYaml(found.model);
  if (output == "svg") return TopologySvg(found);
  if (output == "text") return PrintableLines(TopologyTree(found));
  return ToJson(found).dump(2, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

int RunTopology(const TopologyOptions& options, kube::Api* api, std::ostream& out,
                std::ostream& err) {
  const auto fail = [&err](const absl::Status& status) {
    err << "railhead topology: " << PrintableText(status.message()) << "\n";
    return kBadSource;
  };
  const absl::StatusOr<Loaded> loaded = Load(options, api);
  if (!loaded.ok()) return fail(loaded.status());
  const DiscoveredFabric& found = loaded->found;
  if (IsPublished(options.output)) {
    const absl::StatusOr<OrderedJson> published = Published(*loaded, options.output, err);
    if (!published.ok()) return fail(published.status());
    out << published->dump(2, ' ', true, OrderedJson::error_handler_t::replace) << "\n";
  } else {
    out << Shown(found, options.output);
  }
  out.flush();
  if (!out) return fail(absl::UnavailableError("cannot write the output"));
  err << FindingsTable(found.findings);
  return Worst(found.findings) == Severity::kFail ? kTrouble : kNoTrouble;
}

}  // namespace railhead::cli
