// SPDX-License-Identifier: Apache-2.0
//
// Any text as the nodes and pods of a cluster: whatever they are, decisions are the same each time,
// give no node more than it has, and each pod at most one place.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "kube/json.h"
#include "kube/yaml.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/release_patch.h"
#include "operator/gangs/why.h"

namespace railhead::op::gangs {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

std::vector<Decision> DecisionsOf(const NodeTree& tree, const std::vector<PodValue>& pods) {
  ClusterRoom room(&tree, pods, {});
  return Decide(GangsOf(pods, {}, room.node_of_hostname()), {}, room);
}

void Run(absl::string_view text) {
  const absl::StatusOr<std::vector<kube::Json>> documents = kube::ParseYaml(text);
  if (!documents.ok()) return;
  std::vector<NodeValue> nodes;
  std::vector<PodValue> pods;
  ClusterObjects objects;
  for (const kube::Json& document : *documents) {
    Collect(document, objects);
    if (auto node = ReadStoredNode(document); kube::StringAt(document, {"kind"}) == "Node") {
      if (node) nodes.push_back(std::make_shared<const StoredNode>(*std::move(node)));
    } else if (auto pod = ReadStoredPod(document)) {
      pods.push_back(std::make_shared<const StoredPod>(*std::move(pod)));
    }
  }
  const NodeTree tree = BuildTree(nodes);
  Require(tree.nodes.size() == tree.model.nodes.size());
  const std::vector<Decision> decisions = DecisionsOf(tree, pods);
  const std::vector<Decision> again = DecisionsOf(tree, pods);
  Require(again.size() == decisions.size());
  if (!decisions.empty()) {
    const std::string& name = decisions.front().gang.name;
    Why(objects, "", name, absl::UnixEpoch()).IgnoreError();
  }
  for (size_t i = 0; i < decisions.size(); ++i) {
    const Decision& decision = decisions[i];
    Require(decision.message == again[i].message);
    Require(decision.assignments == again[i].assignments);
    Require(decision.gang.gated.empty() || !decision.message.empty());
    for (const PodValue& pod : decision.gang.gated) {
      Require(UngatePatch(Assignment{pod, "", "", 0, ""}).size() == 4);
      Require(FailurePatch(*pod, decision.message).size() == 5);
    }
    if (decision.state != Decision::State::kPlaced) continue;
    Require(decision.assignments.size() == decision.gang.gated.size());
    std::set<const StoredPod*> placed;
    for (const Assignment& assignment : decision.assignments) {
      Require(placed.insert(assignment.pod.get()).second);
      Require(!assignment.hostname.empty());
      Require(ReleasePatch(assignment, decision.placement).size() ==
              (assignment.master.empty() ? 6u : 7u));
    }
  }
}

}  // namespace
}  // namespace railhead::op::gangs

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::op::gangs::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
