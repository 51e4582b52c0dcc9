// SPDX-License-Identifier: Apache-2.0
#include "fabric/model/model_json.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "fabric/model/fabric_model.h"

namespace railhead::fabric {
namespace {

using Json = nlohmann::ordered_json;

Json NodeJson(const FabricNode& node) {
  Json json = {{"name", node.name}, {"gpus", node.gpus}, {"hcas", node.hcas}};
  if (node.used_gpus > 0) json["usedGpus"] = node.used_gpus;
  if (node.used_hcas > 0) json["usedHcas"] = node.used_hcas;
  if (!node.dead_rails.empty()) json["deadRails"] = node.dead_rails;
  if (!node.used_rails.empty()) json["usedRails"] = node.used_rails;
  if (!node.unschedulable.empty()) json["unschedulable"] = node.unschedulable;
  return json;
}

Json DomainsJson(const FabricModel& model, size_t level, int first, int count) {
  Json list = Json::array();
  for (int i = first; i < first + count; ++i) {
    const FabricDomain& domain = model.domains[level][static_cast<size_t>(i)];
    Json json = {{"name", domain.name}};
    if (level + 1 < model.levels.size()) {
      json["domains"] = DomainsJson(model, level + 1, domain.first, domain.count);
    } else {
      Json nodes = Json::array();
      for (int n = domain.first; n < domain.first + domain.count; ++n) {
        nodes.push_back(NodeJson(model.nodes[static_cast<size_t>(n)]));
      }
      json["nodes"] = std::move(nodes);
    }
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

Json ToJson(const FabricModel& model) {
  Json spec = {
      {"topology", TopologyName(model.topology)}, {"levels", model.levels}, {"rails", model.rails}};
  if (!model.link_gbps.empty()) spec["linkGbps"] = model.link_gbps;
  if (!model.global_links.empty()) {
    Json links = Json::array();
    for (const GlobalLink& link : model.global_links) {
      links.push_back({{"a", link.a}, {"b", link.b}, {"gbps", link.gbps}});
    }
    spec["globalLinks"] = std::move(links);
  }
  spec["domains"] = DomainsJson(model, 0, 0, static_cast<int>(model.domains[0].size()));
  return {{"apiVersion", "railhead.io/v1alpha1"},
          {"kind", "FabricModel"},
          {"metadata", {{"name", model.name}}},
          {"spec", std::move(spec)}};
}

}  // namespace railhead::fabric
