// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/pod_rules.h"

#include <gtest/gtest.h>

#include <string>

namespace railhead::op::gangs {
namespace {

using kube::Json;

// A pod with the labels a=b and c=d, and these required terms of an anti-affinity.
Json Apart(const std::string& terms) {
  Json pod = Json::parse(R"({"metadata": {"labels": {"a": "b", "c": "d"}}, "spec": {}})");
  pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
      Json::parse(terms);
  return pod;
}

TEST(PodRules, ThoseOfItsKindOnAnotherHost) {
  for (
      const char* terms :
      {R"([{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}])",
       R"([{"topologyKey": "kubernetes.io/hostname",
             "labelSelector": {"matchExpressions": [{"key": "c", "operator": "Exists"}]}}])"}) {
    EXPECT_TRUE(OneOnANode(Apart(terms))) << terms;
    EXPECT_EQ(RuleAboutPods(Apart(terms)), "") << terms;
  }
}

TEST(PodRules, WhatElseIsSaidOfOtherPodsIsNamed) {
  for (
      const char* term :
      {R"({"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}})",
       R"({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "x"}}})",
       R"({"topologyKey": "kubernetes.io/hostname", "labelSelector": {}})",
       R"({"topologyKey": "kubernetes.io/hostname", "labelSelector": null})",
       R"({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": 5}})",
       R"({"topologyKey": "kubernetes.io/hostname"})",
       R"({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}},
            "namespaces": ["other"]})",
       R"({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}},
            "matchLabelKeys": ["c"]})",
       "null", "5", "[]"}) {
    const Json pod = Apart("[" + std::string(term) + "]");
    EXPECT_FALSE(OneOnANode(pod)) << term;
    EXPECT_EQ(RuleAboutPods(pod), "spec.affinity.podAntiAffinity") << term;
    // Beside one that is understood.
    const Json both = Apart(
        R"([{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}},)" +
        std::string(term) + "]");
    EXPECT_TRUE(OneOnANode(both)) << term;
    EXPECT_EQ(RuleAboutPods(both), "spec.affinity.podAntiAffinity") << term;
  }
  Json near = Apart("[]");
  near["spec"]["affinity"]["podAffinity"] = {
      {"requiredDuringSchedulingIgnoredDuringExecution", {{{"topologyKey", "zone"}}}}};
  EXPECT_EQ(RuleAboutPods(near), "spec.affinity.podAffinity");
  EXPECT_EQ(RuleAboutPods(Apart("[]")), "");
  EXPECT_EQ(RuleAboutPods(Apart("{}")), "");
}

TEST(PodRules, PortsOfTheNodeAreForOnePod) {
  Json pod = Json::parse(R"({"spec": {"containers": [{}, {"ports": [{"containerPort": 1}]}]}})");
  EXPECT_FALSE(OneOnANode(pod));
  pod["spec"]["containers"][1]["ports"][0]["hostPort"] = 0;
  EXPECT_FALSE(OneOnANode(pod));
  pod["spec"]["containers"][1]["ports"][0]["hostPort"] = 80;
  EXPECT_TRUE(OneOnANode(pod));
}

TEST(PodRules, ANameInDnsNeedsBothParts) {
  EXPECT_EQ(DnsNameOf(Json::parse(R"({"spec": {"hostname": "w-0", "subdomain": "ring"}})")),
            "w-0.ring");
  EXPECT_EQ(DnsNameOf(Json::parse(R"({"spec": {"hostname": "w-0"}})")), "");
  EXPECT_EQ(DnsNameOf(Json::parse(R"({"spec": {"subdomain": "ring"}})")), "");
}

}  // namespace
}  // namespace railhead::op::gangs
