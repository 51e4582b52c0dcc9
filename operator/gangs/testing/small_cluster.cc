// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/testing/small_cluster.h"

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "operator/gangs/release_patch.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs::testing {

using kube::Json;

namespace {

int HcasOf(const Json& pod) {
  return std::stoi(
      pod["spec"]["containers"][0]["resources"]["requests"]["rdma/hca"].get<std::string>());
}

}  // namespace

Json NodeObject(const std::string& name, const std::string& spine, const std::string& leaf) {
  Json node = Json::parse(R"({"apiVersion": "v1", "kind": "Node", "metadata": {}, "spec": {},
    "status": {"allocatable": {"cpu": "96", "memory": "1Ti", "pods": "110", "rdma/hca": "8",
                               "nvidia.com/gpu": "8"},
               "conditions": [{"type": "Ready", "status": "True"}]}})");
  node["metadata"] = {{"name", name}, {"labels", {{kHostname, name}}}};
  if (!spine.empty()) {
    node["metadata"]["labels"]["topology.railhead.io/spine"] = spine;
    node["metadata"]["labels"]["topology.railhead.io/leaf"] = leaf;
  }
  return node;
}

Json PodObject(const PodSpec& spec) {
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = {
      {"name", spec.name},
      {"namespace", "train"},
      {"uid", "uid-" + spec.name},
      {"creationTimestamp", absl::StrFormat("2026-01-01T%02d:%02d:%02dZ", spec.second / 3600,
                                            spec.second / 60 % 60, spec.second % 60)}};
  pod["spec"]["priority"] = spec.priority;
  const std::string amount = absl::StrCat(spec.hcas);
  pod["spec"]["containers"] = {
      {{"name", "main"},
       {"resources",
        {{"requests", {{"cpu", "1"}, {"rdma/hca", amount}, {"nvidia.com/gpu", amount}}}}}}};
  if (spec.gang.empty()) return pod;
  pod["metadata"]["labels"][kGangLabel] = spec.gang;
  pod["metadata"]["annotations"][kGangSize] = absl::StrCat(spec.size);
  if (!spec.require_level.empty()) {
    pod["metadata"]["annotations"][kRequireLevel] = spec.require_level;
  }
  if (spec.index >= 0) {
    pod["metadata"]["annotations"][kCompletionIndex] = absl::StrCat(spec.index);
  }
  if (!spec.owner.empty()) {
    pod["metadata"]["ownerReferences"] = {
        {{"apiVersion", spec.kind == "Job" ? "batch/v1" : "apps/v1"},
         {"kind", spec.kind},
         {"name", spec.owner},
         {"uid", spec.owner},
         {"controller", true}}};
  }
  pod["spec"]["schedulingGates"] = {{{"name", kGate}}};
  return pod;
}

void SmallCluster::AddPod(const PodSpec& spec) {
  Json pod = PodObject(spec);
  pod["metadata"]["uid"] = absl::StrCat("u", ++serial_);
  pods[spec.name] = std::move(pod);
}

std::vector<NodeValue> SmallCluster::Nodes() const {
  std::vector<NodeValue> values;
  for (const auto& [name, object] : nodes) {
    if (auto node = ReadStoredNode(object)) {
      values.push_back(std::make_shared<const StoredNode>(*std::move(node)));
    }
  }
  return values;
}

std::vector<PodValue> SmallCluster::Pods() const {
  std::vector<PodValue> values;
  for (const auto& [name, object] : pods) {
    if (auto pod = ReadStoredPod(object)) {
      values.push_back(std::make_shared<const StoredPod>(*std::move(pod)));
    }
  }
  return values;
}

std::vector<Decision> SmallCluster::Decide(const Promises& promises, const RefusedNodes& refused,
                                           const DecideOptions& options) const {
  const NodeTree tree = BuildTree(Nodes());
  const std::vector<PodValue> all = Pods();
  ClusterRoom room(&tree, all, promises);
  return gangs::Decide(GangsOf(all, promises, room.node_of_hostname()), refused, room, options);
}

bool SmallCluster::Release(const Assignment& assignment, const std::string& placement) {
  const auto pod = pods.find(assignment.pod->name);
  if (pod == pods.end()) return false;
  try {
    pod->second = pod->second.patch(ReleasePatch(assignment, placement));
  } catch (const Json::exception&) {
    return false;
  }
  return true;
}

void SmallCluster::ReleaseAll(const std::vector<Decision>& decisions) {
  for (const Decision& decision : decisions) {
    for (const Assignment& assignment : decision.assignments) {
      if (!Release(assignment, decision.placement)) std::abort();
    }
  }
}

int SmallCluster::Bind() {
  int refused = 0;
  for (auto& [name, pod] : pods) {
    if (!pod["spec"].value("nodeName", "").empty()) continue;
    if (pod["spec"].contains("schedulingGates") && !pod["spec"]["schedulingGates"].empty()) {
      continue;
    }
    const std::string node = pod["spec"]["nodeSelector"][kHostname].get<std::string>();
    const bool there = nodes.contains(node) && !nodes[node]["spec"].value("unschedulable", false);
    if (!there || UsedHcas(node) + HcasOf(pod) > 8) {
      ++refused;
    } else {
      pod["spec"]["nodeName"] = node;
    }
  }
  return refused;
}

int SmallCluster::UsedHcas(const std::string& node) const {
  int used = 0;
  for (const auto& [name, pod] : pods) {
    if (pod["spec"].value("nodeName", "") == node) used += HcasOf(pod);
  }
  return used;
}

std::vector<std::string> SmallCluster::NodesOf(const std::string& gang) const {
  std::map<int, std::string> by_rank;
  int gated = 0;
  for (const auto& [name, pod] : pods) {
    if (kube::StringAt(pod, {"metadata", "labels", kGangLabel}) != gang) continue;
    const std::string rank = kube::StringAt(pod, {"metadata", "annotations", kRank});
    by_rank[rank.empty() ? --gated : std::stoi(rank)] =
        kube::StringAt(pod, {"spec", "nodeSelector", kHostname});
  }
  std::vector<std::string> found;
  for (const auto& [rank, node] : by_rank) found.push_back(node);
  return found;
}

}  // namespace railhead::op::gangs::testing
