// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kube/yaml.h"
#include "operator/objects/quantity.h"
#include "operator/verdict/node_facts.h"
#include "operator/verdict/pod_facts.h"
#include "operator/verdict/rules.h"

namespace railhead::op::verdict {
namespace {

using kube::Json;

Json Yaml(const char* text) { return kube::ParseYaml(text)->at(0); }

TEST(QuantityTest, AsTheApiWritesThem) {
  const std::pair<Json, double> good[] = {
      {8, 8},        {"8", 8},     {"0.5", 0.5},  {"64Mi", 64 << 20},
      {"1Ki", 1024}, {"1k", 1000}, {"100m", 0.1}, {"1.5Gi", 1.5 * (1 << 30)},
      {"2e3", 2000}, {"1E", 1e18}, {"1E2", 100},  {"1Ei", 0x1p60}};
  for (const auto& [text, value] : good) EXPECT_EQ(ParseQuantity(text), value) << text;
  for (const Json& bad : {Json("-1"), Json("64MB"), Json(""), Json("Mi"), Json("x"), Json("1ee2"),
                          Json(), Json::array(), Json("nan"), Json("1e999")}) {
    EXPECT_EQ(ParseQuantity(bad), std::nullopt) << bad;
  }
}

TEST(PodFactsTest, WhatIsKeptOfAPod) {
  const std::optional<PodFacts> facts = PodFactsOf(Yaml(R"(
metadata:
  name: a-0
  namespace: team
  uid: u
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {controller-revision-hash: a-5d9}
  annotations:
    railhead.io/injected: "1"
    railhead.io/profile: h100@7
    railhead.io/kept-environment: NCCL_IB_HCA,RANK
    railhead.io/world-size: "4"
    batch.kubernetes.io/job-completion-index: "3"
    railhead.io/metrics-port: "9500"
spec:
  nodeName: n1
  securityContext: {runAsUser: 1000}
  initContainers:
  - {name: check, resources: {limits: {rdma/hca: 2}}, securityContext: {runAsUser: 0}}
  containers:
  - name: main
    resources: {limits: {rdma/hca: 8, nvidia.com/gpu: "4", cpu: 2}}
    securityContext: {capabilities: {add: [IPC_LOCK]}}
    env:
    - {name: NCCL_IB_HCA, value: mlx5_0}
    - {name: NCCL_ALGO, value: Ring}
    - {name: NCCL_ALGO, value: $(OTHER)}
    - {name: SECRET, value: hush}
  - {name: sidecar, resources: {limits: {cpu: 1}}}
status:
  phase: Running
  podIP: 10.1.2.3
  containerStatuses:
  - {name: main, state: {running: {startedAt: "2026-01-01T00:00:07Z"}}}
  - {name: sidecar, state: {running: {startedAt: "2026-01-01T00:00:09Z"}}}
)"),
                                                   RdmaResources());
  ASSERT_TRUE(facts.has_value());
  PodFacts expected;
  expected.space = "team";
  expected.name = "a-0";
  expected.uid = "u";
  expected.node = "n1";
  expected.address = "10.1.2.3";
  PodTerms terms;
  terms.revision = "a-5d9";
  expected.created = absl::FromUnixSeconds(1767225600);
  expected.running_since = absl::FromUnixSeconds(1767225607);
  expected.admitted = true;
  terms.profile = "h100";
  terms.generation = 7;
  terms.kept = {"NCCL_IB_HCA", "RANK"};
  expected.rank = 3;
  expected.world = 4;
  terms.interfaces = std::set<std::string>{"eth0", "lo"};
  expected.metrics_port = 9500;
  ContainerFacts check;
  check.name = "check";
  check.devices = {{"rdma/hca", 2}};
  check.memlock_applies = true;
  check.init = true;
  check.shared_memory = 64 << 20;
  check.shared_memory_assumed = true;
  ContainerFacts main;
  main.name = "main";
  main.devices = {{"rdma/hca", 8}};
  main.gpus = 4;
  main.environment = {{"NCCL_IB_HCA", "mlx5_0"}};
  main.memlock_applies = true;
  main.non_root = true;
  main.shared_memory = 64 << 20;
  main.shared_memory_assumed = true;
  terms.containers = {check, main};
  expected.terms = std::move(terms);
  EXPECT_EQ(*facts, expected);
}

TEST(PodFactsTest, ItRunsWhenItsContainersWithRdmaDo) {
  const auto since = [](const char* statuses, const char* init = "[]") {
    Json pod = {{"status", {{"phase", "Running"}, {"containerStatuses", Yaml(statuses)}}}};
    const Json rdma = Json::parse(R"({"limits": {"rdma/hca": 1}})");
    pod["spec"]["initContainers"] = Yaml(init);
    pod["spec"]["containers"] = Json::array({{{"name", "helper"}}, {{"name", "main"}}});
    if (pod["spec"]["initContainers"].empty()) pod["spec"]["containers"][1]["resources"] = rdma;
    return PodFactsOf(pod, RdmaResources())->running_since;
  };
  const absl::Time start = absl::FromUnixSeconds(1767225607);
  constexpr char kMain[] = R"({name: main, state: {running: {startedAt: "2026-01-01T00:00:07Z"}}})";
  for (const char* helper : {"{terminated: {exitCode: 0}}", "{waiting: {reason: CrashLoopBackOff}}",
                             "{}", "{running: {startedAt: \"2026-01-01T00:00:09Z\"}}"}) {
    const std::string statuses = absl::StrCat("[{name: helper, state: ", helper, "}, ", kMain, "]");
    EXPECT_EQ(since(statuses.c_str()), start) << helper;
  }
  EXPECT_EQ(since("[{name: helper, state: {running: {startedAt: \"2026-01-01T00:00:07Z\"}}}]"),
            absl::InfiniteFuture());
  EXPECT_EQ(since("[]"), absl::InfiniteFuture());
  // A check before the others has RDMA, and is over when they run.
  constexpr char kCheck[] = "[{name: check, resources: {limits: {rdma/hca: 1}}}]";
  EXPECT_EQ(since(absl::StrCat("[", kMain, "]").c_str(), kCheck), start);
  EXPECT_EQ(since(absl::StrCat("[", kMain, ", {name: helper, state: {}}]").c_str(), kCheck),
            absl::InfiniteFuture());
}

TEST(PodFactsTest, SidecarsHoldTheirDevicesBesideTheOthers) {
  const auto devices = [](const char* init) {
    Json pod = {{"spec", {{"initContainers", Yaml(init)}}}};
    pod["spec"]["containers"] = Yaml("[{name: main, resources: {limits: {rdma/hca: 4}}}]");
    return DevicesOf(*PodFactsOf(pod, RdmaResources()))["rdma/hca"];
  };
  constexpr char kProxy[] =
      "{name: proxy, restartPolicy: Always, resources: {limits: {rdma/hca: 2}}}";
  constexpr char kCheck[] = "{name: check, resources: {limits: {rdma/hca: 5}}}";
  EXPECT_EQ(devices(absl::StrCat("[", kProxy, "]").c_str()), 6);
  EXPECT_EQ(devices(absl::StrCat("[", kCheck, "]").c_str()), 5);
  EXPECT_EQ(devices(absl::StrCat("[", kCheck, ", ", kProxy, "]").c_str()), 6);
  EXPECT_EQ(devices(absl::StrCat("[", kProxy, ", ", kCheck, "]").c_str()), 7);
}

TEST(PodFactsTest, ASidecarWithRdmaRunsWhenItDoes) {
  Json pod = Yaml(R"(
spec:
  initContainers: [{name: proxy, restartPolicy: Always, resources: {limits: {rdma/hca: 1}}}]
  containers: [{name: main}]
status:
  phase: Running
  initContainerStatuses:
  - {name: proxy, state: {running: {startedAt: "2026-01-01T00:00:07Z"}}}
  containerStatuses: [{name: main, state: {waiting: {}}}]
)");
  EXPECT_EQ(PodFactsOf(pod, RdmaResources())->running_since, absl::FromUnixSeconds(1767225607));
  pod["status"]["initContainerStatuses"][0]["state"] = {{"waiting", Json::object()}};
  EXPECT_EQ(PodFactsOf(pod, RdmaResources())->running_since, absl::InfiniteFuture());
}

TEST(PodFactsTest, APodInWhichMpirunStartsRanksHasNoneOfItsOwn) {
  Json pod = Yaml(R"(
metadata: {annotations: {railhead.io/world-size: "8", batch.kubernetes.io/job-completion-index: "3"}}
spec: {containers: [{name: main, resources: {limits: {rdma/hca: 1}}}]}
)");
  EXPECT_EQ(PodFactsOf(pod, RdmaResources())->rank, 3);
  pod["spec"]["containers"][0]["command"] = {"/usr/sbin/sshd"};
  EXPECT_EQ(PodFactsOf(pod, RdmaResources())->rank, std::nullopt);
  EXPECT_EQ(PodFactsOf(pod, RdmaResources())->world, std::nullopt);
}

TEST(PodFactsTest, RanksOfAReplicatedJobAreCountedOverItsJobs) {
  Json pod = Yaml(R"(
metadata:
  labels:
    jobset.sigs.k8s.io/jobset-name: js
    jobset.sigs.k8s.io/jobset-uid: uid-set
    jobset.sigs.k8s.io/replicatedjob-name: w
    jobset.sigs.k8s.io/replicatedjob-replicas: "2"
    jobset.sigs.k8s.io/job-index: "1"
  annotations:
    railhead.io/world-size: "8"
    batch.kubernetes.io/job-completion-index: "3"
spec: {containers: [{name: main, resources: {limits: {rdma/hca: 1}}}]}
)");
  PodFacts facts = *PodFactsOf(pod, RdmaResources());
  EXPECT_EQ(facts.rank, 7);
  EXPECT_EQ(facts.terms->replicated_job, "js-w");
  EXPECT_EQ(facts.terms->job_set_uid, "uid-set");
  const auto stays_alone = [](Json other) {
    const PodFacts read = *PodFactsOf(other, RdmaResources());
    return read.rank == 3 && read.terms->replicated_job.empty();
  };
  Json other = pod;
  other["metadata"]["annotations"]["railhead.io/rank-group"] = "job";
  EXPECT_TRUE(stays_alone(other));
  other = pod;
  other["metadata"]["annotations"]["railhead.io/world-size"] = "7";  // of no two Jobs alike
  EXPECT_TRUE(stays_alone(other));
  other = pod;
  other["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-replicas"] = "1";
  EXPECT_TRUE(stays_alone(other));
  other = pod;
  other["metadata"]["annotations"].erase("railhead.io/world-size");
  EXPECT_TRUE(stays_alone(other));
}

TEST(PodFactsTest, TheGangOfAPodWithoutAnOwnerIsThatOfItsLabel) {
  const auto gang = [](const char* label, const char* owners = "[]") {
    Json pod = {{"metadata", {{"labels", {{"railhead.io/gang", label}}}}}};
    pod["metadata"]["ownerReferences"] = Yaml(owners);
    pod["spec"] = Yaml("{containers: [{name: main, resources: {limits: {rdma/hca: 1}}}]}");
    return PodFactsOf(pod, RdmaResources())->terms->gang;
  };
  EXPECT_EQ(gang("train"), "train");
  EXPECT_EQ(gang("true"), "");
  EXPECT_EQ(gang("false"), "");
  EXPECT_EQ(gang("train", "[{apiVersion: v1, kind: Job, name: j, uid: u, controller: true}]"), "");
}

TEST(PodFactsTest, NothingOfPodsThatAskForNoRdma) {
  EXPECT_EQ(PodFactsOf(Yaml("{spec: {containers: [{name: a}]}}"), RdmaResources()), std::nullopt);
  EXPECT_EQ(PodFactsOf(Yaml("{spec: {containers: 7}}"), RdmaResources()), std::nullopt);
  EXPECT_EQ(PodFactsOf(Yaml("{spec: 7}"), RdmaResources()), std::nullopt);
  EXPECT_EQ(PodFactsOf(Json(), RdmaResources()), std::nullopt);
}

TEST(PodFactsTest, WhatIsStrangeIsAsIfItWereNotThere) {
  const std::optional<PodFacts> facts = PodFactsOf(Yaml(R"(
metadata:
  name: a
  annotations: {railhead.io/profile: nothing, prometheus.io/scrape: "true", prometheus.io/port: "0",
                k8s.v1.cni.cncf.io/network-status: "{"}
spec:
  hostNetwork: 7
  securityContext: 7
  volumes: 7
  containers:
  - {name: m, resources: {limits: {rdma/hca: 1, nvidia.com/gpu: many}}, env: 7, volumeMounts: 7}
status:
  phase: Running
  containerStatuses: [7, {name: m, state: {running: {startedAt: soon}}}]
  conditions: 7
)"),
                                                   RdmaResources());
  ASSERT_TRUE(facts.has_value());
  EXPECT_FALSE(facts->admitted);
  EXPECT_EQ(facts->terms->profile, "");
  EXPECT_EQ(facts->metrics_port, 0);
  EXPECT_EQ(facts->terms->interfaces, std::nullopt);
  EXPECT_EQ(facts->running_since, absl::InfiniteFuture());
  EXPECT_EQ(facts->terms->containers[0].gpus, 0);
}

TEST(PodFactsTest, WhatIsKeptOfAPodIsBounded) {
  Json pod = {{"spec", {{"containers", Json::array()}}}};
  pod["metadata"]["annotations"]["railhead.io/kept-environment"] =
      "RANK," + std::string(5000, 'a') + ",NCCL_NET";
  pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] = "gang";
  Json networks = Json::array();
  for (int i = 0; i < 100; ++i) {
    Json one = {{"name", "c"}};
    one["resources"]["limits"]["rdma/hca"] = 1;
    for (int j = 0; j < 100; ++j) {
      one["resources"]["limits"]["rdma/r" + std::to_string(j)] = 1;
    }
    one["env"] = Json::array({{{"name", "NCCL_IB_HCA"}, {"value", std::string(1000, 'x')}},
                              {{"name", "NCCL_ALGO"}, {"value", std::string(5000, 'x')}}});
    pod["spec"]["containers"].push_back(one);
    networks.push_back({{"interface", "net" + std::to_string(i)}});
  }
  pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"] = networks.dump();
  const PodFacts facts = *PodFactsOf(pod, RdmaResources());
  EXPECT_EQ(facts.terms->gang, "gang");
  EXPECT_EQ(facts.terms->kept, (std::set<std::string>{"NCCL_NET", "RANK"}));
  EXPECT_EQ(facts.terms->interfaces, std::nullopt);
  EXPECT_EQ(facts.terms->containers.size(), 64U);
  size_t values = 0;
  for (const ContainerFacts& container : facts.terms->containers) {
    EXPECT_LE(container.devices.size(), 64U);
    EXPECT_EQ(container.environment.count("NCCL_ALGO"), 0U);
    for (const auto& [name, value] : container.environment) values += value.size();
  }
  EXPECT_EQ(values, 4000U);
}

TEST(PodFactsTest, WhoMayPinWithoutALimit) {
  const auto applies = [](const char* pod, const char* container) {
    Json object = {{"spec", {{"securityContext", Yaml(pod)}}}};
    Json one = {{"name", "c"}, {"resources", {{"limits", {{"rdma/hca", 1}}}}}};
    one["securityContext"] = Yaml(container);
    object["spec"]["containers"] = Json::array({one});
    return PodFactsOf(object, RdmaResources())->terms->containers[0].memlock_applies;
  };
  EXPECT_TRUE(applies("{}", "{}"));
  EXPECT_FALSE(applies("{}", "{capabilities: {add: [IPC_LOCK]}}"));
  EXPECT_FALSE(applies("{}", "{capabilities: {add: [CAP_IPC_LOCK, SYS_NICE]}}"));
  EXPECT_FALSE(applies("{}", "{privileged: true}"));
  EXPECT_TRUE(applies("{runAsUser: 1000}", "{privileged: true}"));
  EXPECT_FALSE(applies("{runAsUser: 1000}", "{runAsUser: 0, capabilities: {add: [ALL]}}"));
  EXPECT_TRUE(applies("{}", "{runAsNonRoot: true, capabilities: {add: [IPC_LOCK]}}"));
}

TEST(NodeFactsTest, WhatIsKeptOfANode) {
  const NodeFacts facts = NodeFactsOf(Yaml(R"(
metadata:
  labels: {railhead.io/link-layer: Ethernet, railhead.io/gpudirect: none,
           railhead.io/memlock-bytes: "65536"}
  annotations:
    railhead.io/node-facts: '{"version": 1, "rails": [
      {"rail": 0, "device": "mlx5_0", "linkLayer": "Ethernet", "usable": true, "reason": ""},
      {"rail": 1, "device": "mlx5_1", "linkLayer": "Ethernet", "usable": false,
       "reason": "port 1 is DOWN"}]}'
status:
  allocatable: {rdma/hca: "1", cpu: 8}
  capacity: {rdma/hca: "2", cpu: 8}
)"),
                                      RdmaResources());
  NodeFacts expected;
  expected.allocatable = {{"rdma/hca", 1}};
  expected.capacity = {{"rdma/hca", 2}};
  expected.announced = true;
  std::vector<fabric::SeenRail> rails(2);
  for (size_t rail : {0, 1}) {
    rails[rail].rail = static_cast<int>(rail);
    rails[rail].device = absl::StrCat("mlx5_", rail);
    rails[rail].link_layer = "Ethernet";
  }
  rails[1].usable = false;
  rails[1].reason = "port 1 is DOWN";
  expected.rails = SharedList(std::move(rails));
  expected.link_layer = "Ethernet";
  expected.gpu_direct = "none";
  expected.memlock = 65536;
  EXPECT_EQ(facts, expected);
  EXPECT_EQ(NodeFactsOf(Json(), RdmaResources()), NodeFacts());
  // No agent writes these: nothing of them is believed, and the topology reports why.
  for (const char* damaged : {R"({"version": 1, "rails": [7]})", R"({"version": 2, "rails": []})",
                              R"({"version": 1, "rails": [{"rail": "x", "device": "y"}]})", "{"}) {
    Json node;
    node["metadata"]["annotations"]["railhead.io/node-facts"] = damaged;
    NodeFacts read = NodeFactsOf(node, RdmaResources());
    EXPECT_NE(std::exchange(read.fault, ""), "") << damaged;
    EXPECT_EQ(read, NodeFacts()) << damaged;
  }
  EXPECT_TRUE(NodeFactsOf(Yaml("{spec: {providerID: 'gce://p/z/n'}}"), RdmaResources()).of_a_pool);
  EXPECT_FALSE(NodeFactsOf(Yaml("{spec: {providerID: 'k3s://n'}}"), RdmaResources()).of_a_pool);
  EXPECT_EQ(NodeFactsOf(Yaml("{metadata: {labels: {railhead.io/memlock-bytes: unlimited}}}"),
                        RdmaResources())
                .memlock,
            std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace railhead::op::verdict
