// SPDX-License-Identifier: Apache-2.0
#include "placement/topology/topology_status.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/finding.h"
#include "fabric/model/fabric_model.h"
#include "kube/elements.h"

namespace railhead::topology {
namespace {

using fabric::FabricDomain;
using fabric::FabricModel;
using fabric::FabricNode;
using kube::Json;

constexpr size_t kMaxLeaves = 2000;
constexpr size_t kMaxConflicts = 32;
constexpr size_t kMaxDeadRails = 64;
constexpr size_t kMaxText = 1024;

// Truncates at a character border, as the API server accepts only UTF-8.
std::string Cut(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

int Alive(const FabricNode& node) { return node.hcas - static_cast<int>(node.dead_rails.size()); }

// Counts for `nodes` nodes from index `first`.
Json Counts(const FabricModel& model, int first, int nodes) {
  int gpus = 0;
  int alive = 0;
  int dead = 0;
  int unschedulable = 0;
  for (int i = first; i < first + nodes; ++i) {
    const FabricNode& node = model.nodes[static_cast<size_t>(i)];
    gpus += node.gpus;
    alive += Alive(node);
    dead += static_cast<int>(node.dead_rails.size());
    unschedulable += node.unschedulable.empty() ? 0 : 1;
  }
  return {{"nodes", nodes},
          {"unschedulable", unschedulable},
          {"gpus", gpus},
          {"aliveRails", alive},
          {"deadRails", dead}};
}

Json Leaves(const FabricModel& model, size_t limit) {
  Json leaves = Json::array();
  const size_t innermost = model.levels.size() - 1;
  for (const FabricDomain& leaf : model.domains[innermost]) {
    if (leaves.size() == limit) break;
    Json around = Json::array();
    int parent = leaf.parent;
    for (size_t level = innermost; level-- > 0;) {
      const FabricDomain& domain = model.domains[level][static_cast<size_t>(parent)];
      around.insert(around.begin(), domain.name);
      parent = domain.parent;
    }
    Json of_leaf = Counts(model, leaf.first, leaf.count);
    of_leaf["name"] = leaf.name;
    of_leaf["path"] = std::move(around);
    leaves.push_back(std::move(of_leaf));
  }
  return leaves;
}

Json Levels(const FabricModel& model) {
  Json levels = Json::array();
  for (size_t level = 0; level < model.levels.size(); ++level) {
    levels.push_back({{"name", model.levels[level]}, {"domains", model.domains[level].size()}});
  }
  return levels;
}

Json DeadRails(const FabricModel& model) {
  Json dead = Json::array();
  for (const FabricNode& node : model.nodes) {
    if (node.dead_rails.empty()) continue;
    if (dead.size() == kMaxDeadRails) break;
    dead.push_back({{"node", node.name}, {"rails", node.dead_rails}});
  }
  return dead;
}

// Faults come first.
absl::Span<const Finding> Troubles(const std::vector<Finding>& findings) {
  return absl::MakeConstSpan(findings).first(Count(findings, Severity::kFail));
}

Json Conflicts(absl::Span<const Finding> troubles) {
  Json conflicts = Json::array();
  for (const Finding& finding : troubles) {
    if (conflicts.size() == kMaxConflicts) break;
    conflicts.push_back({{"kind", finding.check},
                         {"object", Cut(finding.object, 253)},
                         {"message", Cut(FindingLine(finding), kMaxText)}});
  }
  return conflicts;
}

struct Condition {
  std::string type;
  bool is_true = false;
  std::string reason;
  std::string message;
};

std::vector<Condition> Conditions(const TopologyReport& report) {
  std::vector<Condition> conditions;
  if (!report.fabric.ok()) {
    const std::string why = Cut(std::string(report.fabric.status().message()), kMaxText);
    const bool invalid = absl::IsInvalidArgument(report.fabric.status());
    conditions.push_back({"Discovered", false, invalid ? "InvalidModel" : "NoPlaces", why});
  } else {
    const bool given = report.fabric->given;
    conditions.push_back(
        {"Discovered", true, given ? "Given" : "Labels",
         given ? "spec.model gives the places of nodes" : "node labels give the places of nodes"});
    const auto troubles = Troubles(report.fabric->found.findings);
    Condition consistent = {"Consistent", troubles.empty(), "NoConflict", ""};
    if (!troubles.empty()) {
      consistent.reason = "Conflicts";
      consistent.message =
          Cut(troubles.size() == 1
                  ? FindingLine(troubles[0])
                  : absl::StrCat(troubles.size(), " conflicts (status.conflicts); the first: ",
                                 FindingLine(troubles[0])),
              kMaxText);
    }
    conditions.push_back(std::move(consistent));
  }
  if (report.published.has_value()) {
    const bool ok = report.published->ok();
    conditions.push_back({"Published", ok, ok ? "UpToDate" : "Failed",
                          Cut(std::string(report.published->message()), kMaxText)});
  }
  return conditions;
}

const Json* ConditionOf(const Json& status, absl::string_view type) {
  for (const Json& condition : kube::ElementsAt(status, {"conditions"})) {
    if (kube::StringAt(condition, {"type"}) == type) return &condition;
  }
  return nullptr;
}

Json ToJson(const TopologyReport& report, size_t max_leaves) {
  Json status = {{"observedGeneration", report.generation}};
  if (!report.fabric.ok()) return status;
  const FabricModel& model = report.fabric->found.model;
  const auto troubles = Troubles(report.fabric->found.findings);
  status["topology"] = fabric::TopologyName(model.topology);
  status["levels"] = Levels(model);
  status["railsPerNode"] = model.rails;
  status["counts"] = Counts(model, 0, static_cast<int>(model.nodes.size()));
  status["leaves"] = Leaves(model, max_leaves);
  status["deadRails"] = DeadRails(model);
  status["conflicts"] = Conflicts(troubles);
  status["conflictCount"] = troubles.size();
  return status;
}

}  // namespace

bool IsUrgent(const Json& before, const Json& after) {
  const Json* seen = kube::Find(before, "observedGeneration");
  if (seen == nullptr || *seen != after["observedGeneration"]) return true;
  if (!before.contains("conditions") || before["conditions"].size() != after["conditions"].size()) {
    return true;
  }
  for (const Json& condition : after["conditions"]) {
    const Json* old = ConditionOf(before, kube::StringAt(condition, {"type"}));
    if (old == nullptr ||
        kube::StringAt(*old, {"status"}) != kube::StringAt(condition, {"status"})) {
      return true;
    }
  }
  return false;
}

std::optional<Json> StatusToApply(const StoredTopology& stored, const TopologyReport& report,
                                  absl::Time now) {
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
  size_t leaves = kMaxLeaves;
  Json status = ToJson(report, leaves);
  while (leaves > 0 && kube::DumpJson(status).size() > kMaxStatus) {
    status = ToJson(report, leaves /= 2);
  }
  Json conditions = Json::array();
  for (const Condition& condition : Conditions(report)) {
    const std::string is = condition.is_true ? "True" : "False";
    const Json* before = ConditionOf(stored.status, condition.type);
    const bool stays = before != nullptr && kube::StringAt(*before, {"status"}) == is &&
                       !kube::StringAt(*before, {"lastTransitionTime"}).empty();
    conditions.push_back(
        {{"type", condition.type},
         {"status", is},
         {"reason", condition.reason},
         {"message", condition.message},
         {"observedGeneration", report.generation},
         {"lastTransitionTime", stays ? kube::StringAt(*before, {"lastTransitionTime"}) : time}});
  }
  status["conditions"] = std::move(conditions);
  status["lastChange"] = kube::StringAt(stored.status, {"lastChange"});
  if (status == stored.status) return std::nullopt;
  status["lastChange"] = time;
  return Json{{"apiVersion", kTopologyVersion},
              {"kind", kTopologyKind},
              {"metadata", {{"name", kTopologyName}, {"resourceVersion", stored.version}}},
              {"status", std::move(status)}};
}

}  // namespace railhead::topology
