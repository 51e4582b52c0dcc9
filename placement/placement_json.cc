// SPDX-License-Identifier: Apache-2.0
#include "placement/placement_json.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/reasons.h"
#include "placement/request.h"
#include "placement/score.h"
#include "placement/solver.h"

namespace railhead::placement {
namespace {

using Json = nlohmann::ordered_json;

const char* PatternName(Pattern pattern) {
  switch (pattern) {
    case Pattern::kTree:
      return "tree";
    case Pattern::kAllToAll:
      return "alltoall";
    case Pattern::kRing:
      break;
  }
  return "ring";
}

template <typename Count>
Json ByLevel(const fabric::FabricModel& model, const std::vector<Count>& counts) {
  Json json = Json::object();
  for (size_t level = 0; level < counts.size(); ++level) json[model.levels[level]] = counts[level];
  return json;
}

Json ScoreJson(const fabric::FabricModel& model, const PlacementRequest& request,
               const Placement& placement) {
  const Score& score = placement.score;
  Json json = {{"domains", ByLevel(model, score.domains)},
               {"ringCrossings", ByLevel(model, score.ring_crossings)},
               {"patternCrossings", ByLevel(model, score.pattern_crossings)},
               {"railMismatches", score.rail_mismatches}};
  for (const GroupCuts& group : score.groups) {
    Json& cuts = json["groupCuts"][group.name];
    for (size_t level = 0; level < group.cuts.size(); ++level) {
      cuts[model.levels[level]] = {{"cuts", group.cuts[level]}, {"atLeast", group.at_least[level]}};
    }
  }
  if (!request.prefer_level.empty()) {
    const auto level = static_cast<size_t>(*fabric::LevelIndex(model, request.prefer_level));
    json["preferLevelMet"] = score.domains[level] == 1;
  }
  json["optimal"] = placement.optimal;
  return json;
}

}  // namespace

Json ToJson(const Reason& reason) {
  switch (reason.kind) {
    case Reason::Kind::kExcluded:
      return {{"cause", reason.what}, {"nodes", reason.nodes}, {"message", reason.message}};
    case Reason::Kind::kChange:
      if (reason.nodes == 0) return {{"change", reason.what}, {"message", reason.message}};
      return {{"change", reason.what}, {"nodes", reason.nodes}, {"message", reason.message}};
    case Reason::Kind::kRoom:
      break;
  }
  return {{"room", reason.what}, {"nodes", reason.nodes}, {"message", reason.message}};
}

Json ToJson(const PlacementRequest& request) {
  Json spec = {{"pods", request.pods},
               {"gpusPerPod", request.gpus_per_pod},
               {"hcasPerPod", request.hcas_per_pod}};
  if (!request.require_level.empty()) spec["requireLevel"] = request.require_level;
  if (!request.prefer_level.empty()) spec["preferLevel"] = request.prefer_level;
  for (const auto& [name, size] : request.parallelism) spec["parallelism"][name] = size;
  if (request.same_rails) spec["sameRails"] = true;
  spec["pattern"] = PatternName(request.pattern);
  return {{"apiVersion", "railhead.io/v1alpha1"},
          {"kind", "PlacementRequest"},
          {"metadata", {{"name", request.name}}},
          {"spec", std::move(spec)}};
}

Json ToJson(const fabric::FabricModel& model, const PlacementRequest& request,
            const Placement& placement, const std::vector<Reason>& reasons) {
  Json assignment = Json::array();
  for (size_t rank = 0; rank < placement.node_of_rank.size(); ++rank) {
    const auto node = static_cast<size_t>(placement.node_of_rank[rank]);
    assignment.push_back({{"rank", rank}, {"node", model.nodes[node].name}});
  }
  Json told = Json::array();
  for (const Reason& reason : reasons) told.push_back(ToJson(reason));
  return {{"placed", placement.placed},
          {"assignment", std::move(assignment)},
          {"score", placement.placed ? ScoreJson(model, request, placement) : Json(nullptr)},
          {"reasons", std::move(told)}};
}

}  // namespace railhead::placement
