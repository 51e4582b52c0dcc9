// SPDX-License-Identifier: Apache-2.0
#include "placement/decision.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/document_error.h"
#include "base/yaml/document.h"
#include "base/yaml/reader.h"
#include "fabric/model/fabric_model.h"
#include "fabric/model/model_json.h"
#include "fabric/model/model_reader.h"
#include "placement/placement_json.h"
#include "placement/request.h"
#include "placement/request_reader.h"

namespace railhead::placement {
namespace {

void ReadNodes(YamlReader& reader, YamlReader::Value list, Decision& decision) {
  std::unordered_set<std::string> known;
  for (const fabric::FabricNode& node : decision.fabric.nodes) known.insert(node.name);
  reader.ForEach(list, "nodes", [&](YamlReader::Value item, const std::string& path) {
    decision.nodes.push_back(reader.Name(item, path));
    if (known.count(decision.nodes.back()) == 0) {
      reader.Fail(item, path,
                  absl::StrCat(QuotedText(decision.nodes.back()),
                               " is not the name of a node of the fabric"));
    }
  });
  if (!decision.nodes.empty() &&
      decision.nodes.size() != static_cast<size_t>(decision.request.pods)) {
    reader.Fail(list, "nodes",
                absl::StrCat("must be empty or have one node for each of the ",
                             decision.request.pods, " pods, not ", decision.nodes.size()));
  }
}

}  // namespace

std::string ToJson(const Decision& decision) {
  nlohmann::ordered_json json = {
      {"apiVersion", "railhead.io/v1alpha1"},          {"kind", "PlacementDecision"},
      {"metadata", {{"name", decision.request.name}}}, {"fabric", fabric::ToJson(decision.fabric)},
      {"request", ToJson(decision.request)},           {"nodes", decision.nodes}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Decision> ParseDecision(absl::string_view text, absl::string_view source) {
  const absl::StatusOr<YamlDocument> document = YamlDocument::Parse(text, source);
  if (!document.ok()) return document.status();
  YamlReader reader(source);
  const YamlReader::Value root = document->root();
  const YamlReader::Fields fields =
      reader.Mapping(root, "", {"apiVersion", "kind", "metadata", "fabric", "request", "nodes"});
  reader.Header(fields, root, "PlacementDecision");
  const auto model = reader.Need(fields, root, "", "fabric", "it is a FabricModel");
  const auto request = reader.Need(fields, root, "", "request", "it is a PlacementRequest");
  const auto nodes =
      reader.Need(fields, root, "", "nodes", "write [] for a gang that is not placed");
  Decision decision;
  if (reader.status().ok()) decision.fabric = fabric::ReadFabricModel(reader, *model);
  if (reader.status().ok()) {
    decision.request = ReadPlacementRequest(reader, *request, decision.fabric.levels);
  }
  if (reader.status().ok()) ReadNodes(reader, *nodes, decision);
  if (!reader.status().ok()) return reader.status();
  return decision;
}

std::string Difference(const Decision& saved, const std::vector<std::string>& nodes) {
  if (saved.nodes.empty() != nodes.empty()) {
    return nodes.empty() ? "the gang was placed, but now it is not"
                         : "the gang was not placed, but now it is";
  }
  size_t differ = 0;
  std::string first;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    if (saved.nodes[rank] == nodes[rank]) continue;
    if (++differ == 1) {
      first = absl::StrCat("rank ", rank, " was on ", saved.nodes[rank], ", and is now on ",
                           nodes[rank]);
    }
  }
  if (differ == 0) return "";
  return absl::StrCat(differ, " of ", nodes.size(), " ranks are on other nodes: ", first);
}

}  // namespace railhead::placement
