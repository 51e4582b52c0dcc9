// SPDX-License-Identifier: Apache-2.0
//
// What is kept of pods and nodes.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "operator/cluster/stored_pod.h"
#include "operator/gangs/stored_node.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"
#include "operator/objects/node_rules.h"
#include "operator/objects/resources.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using testing::NodeObject;
using testing::PodObject;

TEST(Resources, ContainersAddUpAndInitContainersTakeTurns) {
  // 2 + 1 run, beside a sidecar of 1; before that an init container of 5 beside the sidecar.
  const Json spec = Json::parse(R"({
    "initContainers": [
      {"resources": {"requests": {"cpu": "4500m"}}},
      {"restartPolicy": "Always", "resources": {"requests": {"cpu": 1, "memory": "1Gi"}}},
      {"resources": {"requests": {"cpu": "5"}}}],
    "containers": [{"resources": {"requests": {"cpu": "2", "rdma/hca": "4"}}},
                   {"resources": {"requests": {"cpu": "1", "rdma/hca": "1"}}}, {}]})");
  EXPECT_EQ(
      RequestsOf(spec),
      (Resources{
          {"cpu", 6000}, {"memory", int64_t{1000} << 30}, {"rdma/hca", 5000}, {"pods", 1000}}));
}

TEST(Resources, WhatIsSaidForTheWholePodCountsInsteadAndTheOverheadOnTop) {
  const Json spec = Json::parse(R"({
    "resources": {"requests": {"cpu": "8"}}, "overhead": {"cpu": "250m", "memory": "1k"},
    "containers": [{"resources": {"requests": {"cpu": "2", "rdma/hca": "4"}}}]})");
  EXPECT_EQ(RequestsOf(spec),
            (Resources{{"cpu", 8250}, {"memory", 1'000'000}, {"rdma/hca", 4000}, {"pods", 1000}}));
}

TEST(Resources, DisksOfMoreThanNineTerabytesCountInFull) {
  const Json spec = Json::parse(R"({"containers": [
    {"resources": {"requests": {"ephemeral-storage": "28T"}}},
    {"resources": {"requests": {"ephemeral-storage": "14T", "example.com/all": "9E"}}},
    {"resources": {"requests": {"example.com/all": "9E"}}}]})");
  const Resources requests = RequestsOf(spec);
  EXPECT_EQ(requests.at("ephemeral-storage"), int64_t{42'000'000'000'000'000});
  EXPECT_EQ(requests.at("example.com/all"), int64_t{4'000'000'000'000'000'000}) << "bounded";
}

TEST(Resources, VendorsGpusAndAllKindsOfHcasAreCounted) {
  const Resources resources = {{"nvidia.com/gpu", 8000}, {"amd.com/gpu", 1000}, {"cpu", 5000},
                               {"rdma/hca_a", 2000},     {"rdma/b", 1000},      {"gpu", 9000}};
  EXPECT_EQ(GpusIn(resources), 9);
  EXPECT_EQ(HcasIn(resources, RdmaResources()), 3);
}

TEST(StoredPod, OnlyPodsThatHoldSomethingOrWaitInAGangAreKept) {
  EXPECT_FALSE(ReadStoredPod(PodObject({.name = "pending"})).has_value());
  EXPECT_TRUE(ReadStoredPod(PodObject({.name = "p", .gang = "g", .size = 2})).has_value());
  Json bound = PodObject({.name = "bound"});
  bound["spec"]["nodeName"] = "n";
  EXPECT_EQ(ReadStoredPod(bound)->requests->at("rdma/hca"), 8000);
  bound["status"]["phase"] = "Succeeded";
  EXPECT_FALSE(ReadStoredPod(bound).has_value());
}

TEST(StoredPod, AGangWithoutASizeIsNone) {
  for (const char* size : {"", "0", "-1", "two", "1000000"}) {
    Json pod = PodObject({.name = "p", .gang = "g", .size = 2});
    pod["metadata"]["annotations"][kGangSize] = size;
    EXPECT_FALSE(ReadStoredPod(pod).has_value()) << size;
  }
}

TEST(StoredPod, TellsWhichGateIsOursAndWhetherTheSchedulerRefused) {
  Json pod = PodObject({.name = "p", .gang = "g", .size = 2});
  pod["spec"]["schedulingGates"] = {{{"name", "theirs"}}, {{"name", kGate}}};
  const std::optional<StoredPod> gated = ReadStoredPod(pod);
  EXPECT_EQ(gated->member->gate, 1U);
  EXPECT_TRUE(gated->member->other_gates);
  EXPECT_FALSE(gated->member->released);
  pod["spec"]["schedulingGates"] = Json::array();
  pod["metadata"]["annotations"][kPlacement] = "x";
  pod["metadata"]["annotations"][kRank] = "7";
  pod["metadata"]["resourceVersion"] = "12";
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  const std::optional<StoredPod> released = ReadStoredPod(pod);
  EXPECT_TRUE(released->member->released);
  EXPECT_TRUE(released->member->unschedulable);
  EXPECT_EQ(released->member->rank, 7);
  EXPECT_EQ(*released->member->resource_version, "12");
  pod["status"]["conditions"][0]["reason"] = "SchedulingGated";
  EXPECT_FALSE(ReadStoredPod(pod)->member->unschedulable);
}

TEST(StoredNode, AHeartbeatIsNoChange) {
  Json node = NodeObject("n", "s", "l");
  const std::optional<StoredNode> before = ReadStoredNode(node);
  node["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:00Z";
  node["metadata"]["resourceVersion"] = "99";
  EXPECT_EQ(ReadStoredNode(node), before);
  node["status"]["conditions"][0]["status"] = "Unknown";
  EXPECT_NE(ReadStoredNode(node), before);
}

TEST(StoredNode, NodesWithoutRdmaAreNotKept) {
  Json node = NodeObject("n", "s", "l");
  node["status"]["allocatable"].erase("rdma/hca");
  EXPECT_FALSE(ReadStoredNode(node).has_value());
  node["metadata"]["annotations"]["railhead.io/node-facts"] = R"({"version": 1, "rails": []})";
  EXPECT_TRUE(ReadStoredNode(node).has_value());
}

TEST(NodeRules, ExpressionsHoldAsTheApiSays) {
  const Labels labels = {{"zone", "a"}, {"gen", "5"}};
  const auto matches = [&labels](const char* expression) {
    Json spec;
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
        {"nodeSelectorTerms", {{{"matchExpressions", {Json::parse(expression)}}}}}};
    return WhyNot(ReadNodeRules(spec), "n", labels, {}).empty();
  };
  EXPECT_TRUE(matches(R"({"key": "zone", "operator": "In", "values": ["b", "a"]})"));
  EXPECT_FALSE(matches(R"({"key": "rack", "operator": "In", "values": ["n"]})"));
  EXPECT_FALSE(matches(R"({"key": "zone", "operator": "NotIn", "values": ["a"]})"));
  EXPECT_TRUE(matches(R"({"key": "rack", "operator": "NotIn", "values": ["a"]})"));
  EXPECT_TRUE(matches(R"({"key": "zone", "operator": "Exists"})"));
  EXPECT_TRUE(matches(R"({"key": "rack", "operator": "DoesNotExist"})"));
  EXPECT_TRUE(matches(R"({"key": "gen", "operator": "Gt", "values": ["4"]})"));
  EXPECT_FALSE(matches(R"({"key": "gen", "operator": "Gt", "values": ["5"]})"));
  EXPECT_TRUE(matches(R"({"key": "gen", "operator": "Lt", "values": ["6"]})"));
  EXPECT_FALSE(matches(R"({"key": "zone", "operator": "Lt", "values": ["6"]})"));
  EXPECT_FALSE(matches(R"({"key": "zone", "operator": "Like", "values": ["a"]})"));
}

TEST(NodeRules, TermsAreAlternativesFieldsAreNamesAndAnEmptyTermIsNothing) {
  Json spec;
  Json& terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                    ["nodeSelectorTerms"];
  terms = Json::parse(R"([{}])");
  EXPECT_NE(WhyNot(ReadNodeRules(spec), "n", {}, {}), "");
  terms = Json::parse(R"([{"matchExpressions": [{"key": "a", "operator": "Exists"}]},
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}])");
  EXPECT_EQ(WhyNot(ReadNodeRules(spec), "n", {}, {}), "");
  EXPECT_NE(WhyNot(ReadNodeRules(spec), "m", {}, {}), "");
  EXPECT_EQ(WhyNot(ReadNodeRules(spec), "m", {{"a", ""}}, {}), "");
}

TEST(NodeRules, TaintsAreToleratedByKeyValueAndEffect) {
  const auto tolerated = [](const char* toleration, const Taint& taint) {
    Json spec;
    spec["tolerations"] = {Json::parse(toleration)};
    return WhyNot(ReadNodeRules(spec), "n", {}, {taint}).empty();
  };
  const Taint taint = {"k", "v", "NoSchedule"};
  EXPECT_TRUE(tolerated(R"({"key": "k", "value": "v"})", taint));
  EXPECT_FALSE(tolerated(R"({"key": "k", "value": "w"})", taint));
  EXPECT_TRUE(tolerated(R"({"operator": "Exists"})", taint));
  EXPECT_FALSE(tolerated(R"({"operator": "Exists", "effect": "NoExecute"})", taint));
  EXPECT_FALSE(tolerated(R"({"key": "other", "operator": "Exists"})", taint));
  EXPECT_TRUE(tolerated(R"({"key": "other"})", {"k", "v", "PreferNoSchedule"}));
  EXPECT_TRUE(tolerated(R"({"key": "k", "operator": "Equal", "value": "v"})", taint));
  EXPECT_FALSE(tolerated(R"({"key": "k", "operator": "Unheard", "value": "v"})", taint));
}

TEST(NodeRules, TaintsAreToleratedByTheirNumbersAsTheSchedulerDoes) {
  const auto tolerated = [](const char* how, const char* limit, const char* value) {
    Json spec;
    spec["tolerations"] = {{{"key", "sla"}, {"operator", how}, {"value", limit}}};
    return WhyNot(ReadNodeRules(spec), "n", {}, {{"sla", value, "NoSchedule"}}).empty();
  };
  EXPECT_TRUE(tolerated("Gt", "750", "950"));
  EXPECT_FALSE(tolerated("Gt", "950", "800"));
  EXPECT_FALSE(tolerated("Gt", "950", "950"));
  EXPECT_TRUE(tolerated("Lt", "0", "-5"));
  EXPECT_FALSE(tolerated("Lt", "-5", "-5"));
  EXPECT_TRUE(tolerated("Lt", "9223372036854775807", "9223372036854775806"));
  // Values that the API server's validation does not accept as integers tolerate nothing.
  for (const char* odd : {"", "x", "1.5", "+5", "05", "-0", " 5", "9223372036854775808"}) {
    EXPECT_FALSE(tolerated("Gt", odd, "950")) << odd;
    EXPECT_FALSE(tolerated("Lt", "950", odd)) << odd;
    EXPECT_FALSE(tolerated("Gt", odd, odd)) << odd;
  }
}

}  // namespace
}  // namespace railhead::op::gangs
