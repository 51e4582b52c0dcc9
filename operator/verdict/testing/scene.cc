// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/testing/scene.h"

#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "kube/yaml.h"
#include "operator/verdict/judge.h"
#include "operator/verdict/learned.h"
#include "operator/verdict/node_facts.h"
#include "operator/verdict/pod_facts.h"

namespace railhead::op::verdict::testing {
namespace {

using kube::Json;

constexpr int kPods = 4;
constexpr int kRails = 8;

// $0 is the rank, $1 the number of pods.
constexpr char kPod[] = R"(
apiVersion: v1
kind: Pod
metadata:
  name: train-$0
  namespace: team
  uid: uid-$0
  annotations:
    railhead.io/injected: 0.1.0
    railhead.io/profile: h100@2
    railhead.io/world-size: "$1"
    batch.kubernetes.io/job-completion-index: "$0"
    prometheus.io/scrape: "true"
    prometheus.io/port: "9402"
    prometheus.io/path: /metrics
spec:
  nodeName: n$0
  containers:
  - name: trainer
    env:
    - {name: RANK, value: "$0"}
    resources: {limits: {nvidia.com/gpu: "8", rdma/hca: "8"}}
    securityContext: {capabilities: {add: [IPC_LOCK]}}
    volumeMounts:
    - {name: shm, mountPath: /dev/shm}
  volumes:
  - {name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}
status:
  phase: Running
  podIP: 10.0.0.$0
  containerStatuses:
  - {name: trainer, state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}
)";

Json PodOf(int rank) { return kube::ParseYaml(absl::Substitute(kPod, rank, kPods))->front(); }

Json NodeNamed(const std::string& name) {
  Json rails = Json::array();
  for (int rail = 0; rail < kRails; ++rail) {
    rails.push_back({{"rail", rail},
                     {"device", absl::StrCat("mlx5_", rail)},
                     {"linkLayer", "InfiniBand"},
                     {"usable", true},
                     {"reason", ""}});
  }
  Json node;
  node["metadata"]["name"] = name;
  node["metadata"]["labels"] = {{"railhead.io/link-layer", "InfiniBand"},
                                {"railhead.io/gpudirect", "peermem"},
                                {"railhead.io/memlock-bytes", "8388608"}};
  node["metadata"]["annotations"]["railhead.io/node-facts"] =
      Json({{"version", 1}, {"rails", rails}}).dump();
  node["status"]["allocatable"]["rdma/hca"] = "8";
  node["status"]["capacity"]["rdma/hca"] = "8";
  return node;
}

RuntimeReport ReportOf(int rank) {
  RankReport report;
  report.job = "train";
  report.rank = rank;
  report.start = {kPods, "verbs", "auto", "warn", "", absl::StrCat("train-", rank)};
  std::vector<GivenRail> given;
  std::vector<UsedRail> used;
  for (int rail = 0; rail < kRails; ++rail) {
    const std::string device = absl::StrCat("mlx5_", rail);
    given.push_back({rail, device, "InfiniBand", "400 Gb/sec (4X NDR)", 4096, "", ""});
    used.push_back({rail, device, "verbs", true, 2, 0});
  }
  report.given = SharedList(std::move(given));
  report.used = SharedList(std::move(used));
  report.memlock_limit = std::numeric_limits<double>::infinity();
  report.memlock_wanted = 600 << 20;
  report.memlock_least = 20 << 20;
  report.shared_memory = 16.0 * (1 << 30);
  return {{report}};
}

}  // namespace

Scene::Scene() : pods(Json::array()), nodes(Json::array()) {
  profiles["h100"] = {2, Fabric::kInfiniBand, RequireRdma::kWarn};
  for (int rank = 0; rank < kPods; ++rank) {
    pods.push_back(PodOf(rank));
    nodes.push_back(NodeNamed(absl::StrCat("n", rank)));
    reports.push_back(ReportOf(rank));
  }
  reporting.resize(kPods, true);
  silence.resize(kPods, absl::ZeroDuration());
  unchanged.resize(kPods, absl::Hours(1));
  ended.resize(kPods);
}

void Scene::WeSet(int pod, const std::string& name, const std::string& value) {
  Container(pod)["env"].push_back({{"name", name}, {"value", value}});
}

void Scene::UserSets(int pod, const std::string& name, const std::string& value) {
  WeSet(pod, name, value);
  Json& annotations = pods[pod]["metadata"]["annotations"];
  const std::string before = kube::StringAt(annotations, {"railhead.io/kept-environment"});
  annotations["railhead.io/kept-environment"] =
      absl::StrCat(before, before.empty() ? "" : ",", name);
}

void Scene::WithoutReports() {
  reporting.assign(reporting.size(), false);
  silence.assign(silence.size(), absl::Hours(1));
}

void Scene::RuntimesEnd() {
  for (size_t rank = 0; rank < reporting.size(); ++rank) {
    if (!reporting[rank]) continue;
    reporting[rank] = false;
    silence[rank] = absl::Hours(1);
    ended[rank] = reports[rank];
  }
}

void Scene::LeaderChanges() {
  WithoutReports();
  ended.assign(ended.size(), std::nullopt);
  from_start = false;
}

void Scene::Unschedulable(int pod, const std::string& message) {
  pods[pod]["spec"].erase("nodeName");
  Json condition = {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}};
  condition["message"] = message;
  pods[pod]["status"] = {{"phase", "Pending"}};
  pods[pod]["status"]["conditions"] = Json::array({condition});
  reporting[static_cast<size_t>(pod)] = false;
}

JobFacts Scene::Job() const {
  JobFacts job;
  for (size_t i = 0; i < pods.size(); ++i) {
    std::optional<PodFacts> facts = PodFactsOf(pods[i], RdmaResources());
    if (!facts.has_value()) continue;
    JudgedPod& judged = job.pods.emplace_back();
    judged.pod = std::make_shared<const PodFacts>(*std::move(facts));
    const bool asked = judged.pod->running_since != absl::InfiniteFuture();
    if (asked && !reporting[i]) judged.silence = silence[i];
    if (!judged.pod->unschedulable.empty()) judged.waiting = waiting;
    judged.from_start = from_start;
    judged.unchanged = unchanged[i];
    judged.age = absl::Seconds(1);
    const RuntimeReport* said = reporting[i] ? &reports[i] : ended[i] ? &*ended[i] : nullptr;
    if (said == nullptr) continue;
    judged.heard = true;
    judged.learned = Learn(nullptr, std::make_shared<const RuntimeReport>(*said));
    if (reporting[i]) judged.report = std::make_shared<const RuntimeReport>(*said);
  }
  job.comparable = comparable;
  job.one_program = kind != "StatefulSet";
  job.just_lost = just_lost;
  return job;
}

Cluster Scene::MakeCluster() const {
  Cluster::Nodes known;
  for (const Json& node : nodes) {
    known[kube::StringAt(node, {"metadata", "name"})] =
        std::make_shared<const NodeFacts>(NodeFactsOf(node, RdmaResources()));
  }
  return Cluster(std::move(known), profiles, settings);
}

std::vector<PodFinding> Scene::Judge() const { return verdict::Judge(Job(), MakeCluster()); }

}  // namespace railhead::op::verdict::testing
