// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/diagnose.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cli/doctor/checks.h"
#include "cli/output/command.h"

namespace railhead::cli::doctor {
namespace {

struct Row {
  Check check;
  void (*run)(const Evidence&, Notes&);
  // The check applies only to the cluster as a whole, not to a node or a job.
  bool cluster_only;
};

constexpr Row kRows[] = {
    {{"api", "response of the API server"}, CheckApi, false},
    {{"rights", "your read permissions"}, CheckRights, false},
    {{"install", "the chart's release"}, CheckInstall, false},
    {{"crds", "CRDs of railhead.io"}, CheckCrds, true},
    {{"operator", "the operator's pods"}, CheckOperator, false},
    {{"leader", "leader of the operator's replicas"}, CheckLeader, false},
    {{"webhook", "calls of the API server to the operator; CA certificate"}, CheckWebhook, false},
    {{"agents", "the node agents' pods"}, CheckAgents, false},
    {{"versions", "versions of chart, pods, CRDs and this program"}, CheckVersions, true},
    {{"profiles", "RailProfiles"}, CheckProfiles, true},
    {{"nodes", "rails, as reported by the node agents"}, CheckNodes, false},
    {{"devices", "rdma/* that nodes offer and pods hold"}, CheckDevices, false},
    {{"gpudirect", "access of NICs to GPU memory"}, CheckGpuDirect, false},
    {{"memlock", "limit of pinned memory in containers"}, CheckMemlock, false},
    {{"topology", "cabling and placement labels"}, CheckTopology, true},
    {{"gangs", "pods that wait to start together"}, CheckGangs, false},
    {{"jobs", "pods that request rdma/*, and what they received"}, CheckJobs, false},
};

bool WantsSharp(const op::verdict::PodFacts& pod) {
  return std::any_of(pod.terms->containers.begin(), pod.terms->containers.end(),
                     [](const op::verdict::ContainerFacts& container) {
                       const auto collnet = container.environment.find("NCCL_COLLNET_ENABLE");
                       return collnet != container.environment.end() && collnet->second == "1";
                     });
}

// Returns commands for facts that the API server does not have: one for each line of the README's
// table of problems.
std::vector<NextStep> NextSteps(const Evidence& evidence, const Scope& scope) {
  const Release at = InstallationOf(evidence);
  std::string space = "NAMESPACE";
  std::string pod = "POD";
  for (const RdmaPod& candidate : evidence.pods) {
    if (candidate.facts->running_since == absl::InfiniteFuture()) continue;
    space = candidate.facts->space;
    pod = candidate.facts->name;
    break;
  }
  std::vector<NextStep> steps = {
      {"a job uses TCP; MTU, GID, PFC and ECN as a pod sees them",
       Command("kubectl -n $0 exec $1 -- env RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 "
               "MASTER_PORT=29599 railhead-perf --preflight",
               {space, pod})},
      {"bandwidth is low: GB/s of each rail between two nodes",
       Command("helm test $0 --namespace $1 --logs", {at.name, at.space})},
      {"a job hangs: each rank logs the rank that it waits for",
       Command("kubectl -n $0 logs $1 --tail=50", {space, pod})},
      {"GPUDirect fails: list the nodes that support it",
       "kubectl get nodes -L railhead.io/gpudirect,railhead.io/gpus"},
  };
  for (const RdmaPod& candidate : evidence.pods) {
    const op::verdict::PodFacts& facts = *candidate.facts;
    if (facts.running_since == absl::InfiniteFuture() || !WantsSharp(facts)) continue;
    steps.push_back({"SHARP is not used: sharp_am's response, if the image has libsharp",
                     Command("kubectl -n $0 exec $1 -- sharp_hello -d mlx5_0:1 -v 3",
                             {facts.space, facts.name})});
    break;
  }
  if (scope.kind == Scope::Kind::kJob) {
    steps.push_back({"pods wait", Command("railhead why $0 -n $1", {scope.name, scope.space})});
  }
  return steps;
}

}  // namespace

std::vector<Check> Checks() {
  std::vector<Check> checks;
  for (const Row& row : kRows) checks.push_back(row.check);
  return checks;
}

Diagnosis Diagnose(const Evidence& evidence, const Scope& scope) {
  Diagnosis diagnosis;
  for (const Row& row : kRows) {
    if (row.cluster_only && scope.kind != Scope::Kind::kCluster) continue;
    Notes notes(row.check.name);
    row.run(evidence, notes);
    std::vector<Finding> findings = std::move(notes).Take();
    std::stable_sort(findings.begin(), findings.end(),
                     [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
    for (Finding& finding : findings) diagnosis.findings.push_back(std::move(finding));
    if (!evidence.unreachable.empty()) return diagnosis;  // after the first check
  }
  diagnosis.next = NextSteps(evidence, scope);
  return diagnosis;
}

}  // namespace railhead::cli::doctor
