// SPDX-License-Identifier: Apache-2.0
#include "placement/topology/published.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/document_error.h"
#include "fabric/model/fabric_model.h"
#include "placement/topology/place_value.h"

namespace railhead::topology {
namespace {

using fabric::FabricDomain;
using fabric::FabricModel;

constexpr char kNode[] = "node";
constexpr char kHostname[] = "kubernetes.io/hostname";
constexpr size_t kMaxKeyName = 63;  // the part after the '/'
constexpr size_t kMaxLevels = 16;   // of a Topology, hostname and node among them

absl::Status CheckLevels(const FabricModel& model) {
  if (model.levels.size() + 2 > kMaxLevels) {
    return absl::InvalidArgumentError(
        absl::StrCat("fabric ", model.name, ": levels: has ", model.levels.size(),
                     ", but a Topology can have at most ", kMaxLevels - 2, "; remove some"));
  }
  const size_t room = kMaxKeyName - absl::string_view("topology-").size();
  for (const std::string& level : model.levels) {
    const auto fits = [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    };
    const bool ends =
        !level.empty() && absl::ascii_isalnum(static_cast<unsigned char>(level.back()));
    if (ends && level.size() <= room && level != kNode &&
        std::all_of(level.begin(), level.end(), fits)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "fabric ", model.name, ": levels: ", QuotedText(level), " cannot end the name of a label (",
        kLabelPrefix, "...); rename it: letters, digits, '-', '_' and '.', at most ", room,
        " characters, and not \"", kNode, "\""));
  }
  return absl::OkStatus();
}

// Unique values by name.
class Values {
 public:
  absl::Status Add(const FabricModel& model, const std::string& what, const std::string& name) {
    std::string value = PlaceValue(name);
    const auto [there, added] = name_of_.emplace(value, name);
    if (!added) {
      return absl::InvalidArgumentError(
          absl::StrCat("fabric ", model.name, ": ", what, " ", QuotedText(there->second), " and ",
                       what, " ", QuotedText(name), " would both have the label value ", value,
                       " (leading zeros of numbers are ignored); rename one of them"));
    }
    values_.push_back(std::move(value));
    return absl::OkStatus();
  }
  const std::string& operator[](size_t i) const { return values_[i]; }

 private:
  std::map<std::string, std::string> name_of_;
  std::vector<std::string> values_;
};

OrderedJson Metadata(const FabricModel& model, const std::string& name) {
  return {{"name", name},
          {"labels",
           {{"app.kubernetes.io/managed-by", "railhead"}, {kOfTopology, ObjectName(model.name)}}}};
}

OrderedJson Topology(const std::string& version, const FabricModel& model,
                     const std::vector<std::string>& keys) {
  OrderedJson levels = OrderedJson::array();
  for (const std::string& key : keys) levels.push_back({{"nodeLabel", key}});
  levels.push_back({{"nodeLabel", kHostname}});
  return {{"apiVersion", version},
          {"kind", "Topology"},
          {"metadata", Metadata(model, ObjectName(model.name))},
          {"spec", {{"levels", std::move(levels)}}}};
}

// Returns a unique name for the text: adds a counter if the name is taken.
std::string FreeObjectName(const std::string& text, std::set<std::string>& taken) {
  const std::string name = ObjectName(text);
  std::string free = name;
  for (int i = 2; !taken.insert(free).second; ++i) free = absl::StrCat(name, "-", i);
  return free;
}

OrderedJson List(OrderedJson items) {
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
}

}  // namespace

absl::StatusOr<PlaceLabels> LabelsOfPlaces(const FabricModel& model) {
  if (absl::Status status = CheckLevels(model); !status.ok()) return status;
  PlaceLabels labels;
  std::vector<Values> of_level(model.levels.size());
  for (size_t level = 0; level < model.levels.size(); ++level) {
    labels.keys.push_back(absl::StrCat(kLabelPrefix, model.levels[level]));
    for (const FabricDomain& domain : model.domains[level]) {
      absl::Status status = of_level[level].Add(model, model.levels[level], domain.name);
      if (!status.ok()) return status;
    }
  }
  labels.keys.push_back(absl::StrCat(kLabelPrefix, kNode));
  Values of_nodes;
  const std::vector<std::vector<int>> domains = fabric::DomainsOfNodes(model);
  for (size_t node = 0; node < model.nodes.size(); ++node) {
    absl::Status status = of_nodes.Add(model, kNode, model.nodes[node].name);
    if (!status.ok()) return status;
    std::vector<std::string>& values = labels.values.emplace_back();
    for (size_t level = 0; level < of_level.size(); ++level) {
      values.push_back(of_level[level][static_cast<size_t>(domains[level][node])]);
    }
    values.push_back(of_nodes[node]);
  }
  labels.in_order = std::is_sorted(labels.values.begin(), labels.values.end());
  return labels;
}

std::map<std::string, std::map<std::string, std::string>> LabelsByNode(const FabricModel& model,
                                                                       const PlaceLabels& labels) {
  std::map<std::string, std::map<std::string, std::string>> by_node;
  for (size_t node = 0; node < model.nodes.size(); ++node) {
    std::map<std::string, std::string>& own = by_node[model.nodes[node].name];
    for (size_t i = 0; i < labels.keys.size(); ++i) own[labels.keys[i]] = labels.values[node][i];
  }
  return by_node;
}

OrderedJson NodeWithLabels(const std::string& name, const std::string& uid,
                           const std::map<std::string, std::string>& labels) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}, {"uid", uid}, {"labels", labels}}}};
}

OrderedJson NodesWithLabels(const FabricModel& model, const PlaceLabels& labels,
                            const std::map<std::string, std::string>& uid_of_node) {
  const auto by_node = LabelsByNode(model, labels);
  OrderedJson items = OrderedJson::array();
  for (const auto& [name, uid] : uid_of_node) {
    const auto own = by_node.find(name);
    items.push_back(NodeWithLabels(
        name, uid, own == by_node.end() ? std::map<std::string, std::string>() : own->second));
  }
  return List(std::move(items));
}

OrderedJson KueueTopology(const FabricModel& model, const PlaceLabels& labels) {
  return Topology("kueue.x-k8s.io/v1beta2", model, labels.keys);
}

OrderedJson KaiTopology(const FabricModel& model, const PlaceLabels& labels) {
  std::vector<std::string> keys = labels.keys;
  keys.pop_back();
  return Topology("kai.scheduler/v1alpha1", model, keys);
}

OrderedJson VolcanoHyperNodes(const FabricModel& model) {
  const size_t levels = model.levels.size();
  std::vector<std::vector<std::string>> names(levels);
  std::set<std::string> taken;
  for (size_t level = 0; level < levels; ++level) {
    for (const FabricDomain& domain : model.domains[level]) {
      names[level].push_back(
          FreeObjectName(absl::StrCat(model.levels[level], "-", domain.name), taken));
    }
  }
  std::vector<std::vector<bool>> has_nodes(levels);
  OrderedJson items = OrderedJson::array();
  for (size_t level = levels; level-- > 0;) {
    for (size_t d = 0; d < model.domains[level].size(); ++d) {
      const FabricDomain& domain = model.domains[level][d];
      OrderedJson members = OrderedJson::array();
      for (int i = domain.first; i < domain.first + domain.count; ++i) {
        const auto inner = static_cast<size_t>(i);
        const bool leaf = level + 1 == levels;
        const std::string& name = leaf ? model.nodes[inner].name : names[level + 1][inner];
        if (!leaf && !has_nodes[level + 1][inner]) continue;
        members.push_back({{"type", leaf ? "Node" : "HyperNode"},
                           {"selector", {{"exactMatch", {{"name", name}}}}}});
      }
      has_nodes[level].push_back(!members.empty());
      if (members.empty()) continue;
      items.push_back({{"apiVersion", "topology.volcano.sh/v1alpha1"},
                       {"kind", "HyperNode"},
                       {"metadata", Metadata(model, names[level][d])},
                       {"spec", {{"tier", levels - level}, {"members", std::move(members)}}}});
    }
  }
  return List(std::move(items));
}

}  // namespace railhead::topology
