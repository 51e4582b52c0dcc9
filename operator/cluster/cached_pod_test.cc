// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/cached_pod.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/json.h"

namespace railhead::op {
namespace {

using kube::Json;

Json Pod(const std::string& name, const std::string& node, const std::string& hcas) {
  Json pod = {{"metadata", {{"name", name}, {"namespace", "team"}, {"uid", "uid-" + name}}}};
  pod["spec"]["containers"] = {{{"name", "main"}}};
  if (!hcas.empty()) {
    for (const char* field : {"requests", "limits"}) {
      pod["spec"]["containers"][0]["resources"][field]["rdma/hca"] = hcas;
    }
  }
  if (!node.empty()) pod["spec"]["nodeName"] = node;
  return pod;
}

TEST(CachedPodTest, EachReaderHasThePodsThatItLooksAt) {
  PodReader all({.excluded_namespaces = {"kube-system"}, .verdicts = true, .gangs = true});
  const auto both = all.Read(Pod("a", "n0", "1"), nullptr);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->facts->name, "a");
  EXPECT_EQ(both->held->requests->at("rdma/hca"), 1000);
  const auto waits = all.Read(Pod("a", "", "1"), nullptr);
  ASSERT_TRUE(waits.has_value());
  EXPECT_NE(waits->facts, nullptr);
  EXPECT_EQ(waits->held, nullptr) << "it holds nothing yet, and is of no gang";
  const auto plain = all.Read(Pod("a", "n0", ""), nullptr);
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->facts, nullptr);
  EXPECT_NE(plain->held, nullptr);
  EXPECT_FALSE(all.Read(Pod("a", "", ""), nullptr).has_value());

  Json excluded = Pod("a", "n0", "1");
  excluded["metadata"]["namespace"] = "kube-system";
  const auto system = all.Read(excluded, nullptr);
  ASSERT_TRUE(system.has_value());
  EXPECT_EQ(system->facts, nullptr) << "nobody judges it";
  EXPECT_NE(system->held, nullptr) << "it takes room";
}

// Pods each of which is within its bound, with rules that differ.
TEST(CachedPodTest, TheLargeRulesOfANamespaceAreBounded) {
  const auto gated = [](const std::string& space, int number) {
    Json pod = Pod(absl::StrCat("p", number), "", "1");
    pod["metadata"]["namespace"] = space;
    pod["metadata"]["labels"]["railhead.io/gang"] = "g";
    pod["metadata"]["annotations"]["railhead.io/gang-size"] = "4";
    pod["spec"]["schedulingGates"] = {{{"name", "railhead.io/gang"}}};
    Json values = Json::array();
    for (int i = 0; i < 300; ++i) values.push_back(absl::StrCat("value-", number, "-", i));
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
       ["nodeSelectorTerms"] = {
           {{"matchExpressions", {{{"key", "a"}, {"operator", "NotIn"}, {"values", values}}}}}};
    return pod;
  };
  PodReader reader({.gangs = true});
  std::vector<CachedPod> kept;
  size_t bytes = 0;
  int told = 0;
  for (int number = 0; number < 1000; ++number) {
    kept.push_back(*reader.Read(gated("evil", number), nullptr));
    const gangs::Membership& member = *kept.back().held->member;
    for (const auto& term : member.rules->terms) {
      for (const std::string& value : term[0].values) bytes += value.size() + sizeof(value);
    }
    if (member.too_large.empty()) continue;
    EXPECT_TRUE(absl::StrContains(member.too_large, "the pods of namespace evil "))
        << member.too_large;
    ++told;
  }
  EXPECT_GT(told, 500);
  EXPECT_LT(told, 900);
  EXPECT_LT(bytes, kShareOfRules.most_of_one + (size_t{2} << 20U));
  EXPECT_TRUE(reader.Read(gated("good", 0), nullptr)->held->member->too_large.empty());
  EXPECT_EQ(reader.Read(gated("evil", 0), &kept[0])->held, kept[0].held) << "it is known";
  // Pods that are gone make room for others.
  kept.clear();
  EXPECT_TRUE(reader.Read(gated("evil", 2000), nullptr)->held->member->too_large.empty());
}

TEST(CachedPodTest, WhatHasNoReaderIsNotRead) {
  PodReader verdicts({.verdicts = true});
  EXPECT_EQ(verdicts.Read(Pod("a", "n0", "1"), nullptr)->held, nullptr);
  EXPECT_FALSE(verdicts.Read(Pod("a", "n0", ""), nullptr).has_value());
  PodReader gangs({.gangs = true});
  EXPECT_EQ(gangs.Read(Pod("a", "n0", "1"), nullptr)->facts, nullptr);
}

// Each reader hears of its own part alone, and gangs know a pod again by its address.
TEST(CachedPodTest, APartThatIsAsItWasStaysWhereItIs) {
  PodReader reader({.verdicts = true, .gangs = true});
  Json pod = Pod("a", "n0", "1");
  const auto before = reader.Read(pod, nullptr);
  pod["metadata"]["resourceVersion"] = "2";
  EXPECT_EQ(reader.Read(pod, &*before), before);
  pod["status"]["podIP"] = "10.0.0.1";
  const auto address = reader.Read(pod, &*before);
  EXPECT_EQ(address->facts->address, "10.0.0.1");
  EXPECT_EQ(address->held, before->held);
  pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1";
  const auto cpu = reader.Read(pod, &*address);
  EXPECT_EQ(cpu->facts, address->facts);
  EXPECT_EQ(cpu->held->requests->at("cpu"), 1000);
}

TEST(CachedPodTest, WhatPodsOfAJobHaveAlikeIsInMemoryOnce) {
  PodReader reader({.verdicts = true, .gangs = true});
  const auto read = [&reader](const std::string& name) {
    Json pod = Pod(name, "n0", "1");
    pod["metadata"]["labels"]["railhead.io/gang"] = "g";
    pod["metadata"]["annotations"]["railhead.io/gang-size"] = "2";
    return reader.Read(pod, nullptr);
  };
  const auto a = read("a");
  const auto b = read("b");
  EXPECT_EQ(a->facts->terms->containers.begin(), b->facts->terms->containers.begin());
  EXPECT_EQ(&*a->facts->terms, &*b->facts->terms);
  EXPECT_EQ(&*a->held->requests, &*b->held->requests);
  EXPECT_NE(a->held->labels.Find("railhead.io/gang"), nullptr);
  EXPECT_EQ(a->held->labels.Find("railhead.io/gang"), b->held->labels.Find("railhead.io/gang"));
  EXPECT_EQ(&*a->held->member->terms, &*b->held->member->terms);
}

}  // namespace
}  // namespace railhead::op
