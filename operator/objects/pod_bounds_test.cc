// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/pod_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/admission/mutation.h"
#include "operator/cluster/stored_pod.h"
#include "operator/gangs/gang.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The fields that are kept of a pod, each with a list of `count` entries.
struct LargeField {
  std::string name;  // as in messages
  std::function<void(Json& pod, int count)> fill;
  size_t most;
};

std::string LongValue(int number) { return absl::StrCat("a-value-of-some-length-", number); }

Json LongTerms(const char* operation, int count) {
  Json values = Json::array();
  for (int i = 0; i < count; ++i) values.push_back(LongValue(i));
  return {{{"matchExpressions", {{{"key", "zone"}, {"operator", operation}, {"values", values}}}}}};
}

std::vector<LargeField> LargeFields() {
  const char* required = "requiredDuringSchedulingIgnoredDuringExecution";
  return {
      {"spec.affinity.nodeAffinity",
       [=](Json& pod, int count) {
         pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"] =
             LongTerms("NotIn", count);
       },
       kMostRules},
      {"spec.nodeSelector",
       [](Json& pod, int count) {
         for (int i = 0; i < count; ++i) pod["spec"]["nodeSelector"][LongValue(i)] = "yes";
       },
       kMostRules},
      {"spec.tolerations",
       [](Json& pod, int count) {
         for (int i = 0; i < count; ++i)
           pod["spec"]["tolerations"].push_back({{"key", LongValue(i)}});
       },
       kMostRules},
      {"spec.affinity.podAntiAffinity",
       [=](Json& pod, int count) {
         pod["spec"]["affinity"]["podAntiAffinity"][required] = {
             {{"topologyKey", "zone"}, {"labelSelector", LongTerms("In", count)[0]}}};
       },
       kMostRules},
      {"spec.affinity.podAntiAffinity",
       [=](Json& pod, int count) {
         Json& term = pod["spec"]["affinity"]["podAntiAffinity"][required][0];
         term = {{"topologyKey", "zone"}, {"labelSelector", Json::object()}};
         for (int i = 0; i < count; ++i) term["namespaces"].push_back(LongValue(i));
       },
       kMostRules},
      {"hostPort",
       [](Json& pod, int count) {
         for (int i = 1; i <= count; ++i) {
           pod["spec"]["containers"][0]["ports"].push_back({{"hostPort", i}});
         }
       },
       kMostRules},
      {"metadata.labels",
       [](Json& pod, int count) {
         for (int i = 0; i < count; ++i) pod["metadata"]["labels"][LongValue(i)] = "yes";
       },
       kMostLabels},
  };
}

Json FatMember(const std::string& node) {
  Json pod = Json::parse(R"({"metadata": {"namespace": "team", "name": "a", "uid": "u",
      "labels": {"railhead.io/gang": "g"}, "annotations": {"railhead.io/gang-size": "1"}},
    "spec": {"schedulingGates": [{"name": "railhead.io/gang"}],
      "containers": [{"name": "main", "resources": {
        "requests": {"rdma/hca": "8", "cpu": "4"}, "limits": {"rdma/hca": "8"}}}]}})");
  if (!node.empty()) {
    pod["spec"].erase("schedulingGates");
    pod["spec"]["nodeName"] = node;
  }
  return pod;
}

// Bytes of all texts that are kept.
size_t KeptBytes(const StoredPod& pod) {
  size_t bytes = pod.node.size() + pod.beside.size();
  for (const auto& [name, amount] : *pod.requests) bytes += name.size();
  for (const auto& [key, value] : pod.labels) bytes += key.size() + value.size();
  bytes += pod.claims->ports.size() * sizeof(HostPort);
  for (const KeepApart& apart : pod.claims->apart) {
    bytes += apart.topology_key.size();
    for (const std::string& space : apart.spaces) bytes += space.size();
    for (const auto& expression : apart.selector.expressions) {
      for (const std::string& value : expression.values) bytes += value.size();
    }
  }
  if (!pod.member) return bytes;
  const GangTerms& terms = *pod.member->terms;
  for (const std::string* text :
       {&terms.gang, &terms.owner.api, &terms.owner.kind, &terms.owner.name, &terms.owner.uid,
        &terms.group, &terms.group_name, &terms.attempt, &terms.require_level, &terms.prefer_level,
        &terms.pattern, &*pod.member->unschedulable_why}) {
    bytes += text->size();
  }
  for (const auto& [key, value] : pod.member->rules->selector) bytes += key.size() + value.size();
  for (const Toleration& toleration : pod.member->rules->tolerations) {
    bytes += toleration.key.size() + toleration.value.size();
  }
  for (const auto& term : pod.member->rules->terms) {
    for (const NodeExpression& expression : term) {
      for (const std::string& value : expression.values) bytes += value.size();
    }
  }
  return bytes;
}

constexpr size_t kMostOfAPod = 2 * kMostRules + kMostLabels + kMostResources * kMostOfAName +
                               kMostOfAMessage + (size_t{4} << 10U);

TEST(PodBoundsTest, WhatFitsIsKeptAndWhatDoesNotIsTold) {
  for (const LargeField& field : LargeFields()) {
    SCOPED_TRACE(field.name);
    int fitted = 0;
    int told = 0;
    for (const int count : {1, 10, 40, 100, 300, 1000, 3000, 20000}) {
      for (const std::string node : {"", "n0"}) {
        Json pod = FatMember(node);
        field.fill(pod, count);
        const PodExcess excess = ExcessOf(pod);
        const std::optional<StoredPod> stored = ReadStoredPod(pod);
        ASSERT_TRUE(stored && stored->member);
        EXPECT_LT(KeptBytes(*stored), kMostOfAPod) << count;
        EXPECT_EQ(stored->member->too_large, WhyNotKept(excess));
        EXPECT_EQ(stored->requests->at("rdma/hca"), 8000) << "it counts on its node";
        EXPECT_EQ(stored->requests->at("cpu"), 4000);
        ++(WhyNotKept(excess).empty() ? fitted : told);
        if (WhyNotKept(excess).empty()) continue;
        EXPECT_THAT(WhyNotKept(excess), HasSubstr(field.name));
        EXPECT_THAT(WhyNotKept(excess), HasSubstr(absl::StrCat(" at most ", field.most, " ")));
        EXPECT_THAT(WhyNotKept(excess), HasSubstr("; ")) << "the fix";
        if (!node.empty()) continue;
        const auto gangs = GangsOf({std::make_shared<const StoredPod>(*stored)}, Promises(), {});
        ASSERT_EQ(gangs.size(), 1U);
        EXPECT_TRUE(IsTooLarge(gangs[0]));
        EXPECT_THAT(WhyNotComplete(gangs[0]), HasSubstr(WhyNotKept(excess)));
      }
    }
    EXPECT_GT(fitted, 2);
    EXPECT_GT(told, 2);
  }
}

TEST(PodBoundsTest, AdmissionDoesNotGateWhatIsNotPlaced) {
  for (const LargeField& field : LargeFields()) {
    SCOPED_TRACE(field.name);
    Json pod = FatMember("");
    pod["spec"].erase("schedulingGates");
    field.fill(pod, 5000);
    const Mutation mutation =
        MutatePod(pod, {.environment = {}, .gangs = true}, ProfileSet(), "team");
    const Json after = pod.patch(mutation.patch);
    EXPECT_FALSE(after["spec"].contains("schedulingGates"));
    EXPECT_THAT(after["metadata"]["annotations"]["railhead.io/not-done"],
                HasSubstr("GangNotPossible/TooLarge "));
    EXPECT_THAT(mutation.warnings, ::testing::Contains(HasSubstr(field.name)));
  }
}

// Texts beside the rules, which nobody but the user checks.
TEST(PodBoundsTest, TextsOfAnyLengthAreBounded) {
  const std::string large(200'000, 'x');
  for (const char* annotation : {"railhead.io/require-level", "railhead.io/prefer-level",
                                 "railhead.io/pattern", "railhead.io/gang-timeout"}) {
    Json pod = FatMember("");
    pod["metadata"]["annotations"][annotation] = large;
    EXPECT_LT(KeptBytes(*ReadStoredPod(pod)), kMostOfAPod) << annotation;
  }
  for (const char* part : {"apiVersion", "kind", "name", "uid"}) {
    Json pod = FatMember("n0");
    Json owner = {{"apiVersion", "batch/v1"},
                  {"kind", "Job"},
                  {"name", "a"},
                  {"uid", "u"},
                  {"controller", true}};
    owner[part] = large;
    pod["metadata"]["ownerReferences"] = {owner};
    EXPECT_LT(KeptBytes(*ReadStoredPod(pod)), kMostOfAPod) << part;
  }
  Json pod = FatMember("");
  pod["status"]["conditions"] = {{{"type", "PodScheduled"},
                                  {"status", "False"},
                                  {"reason", "Unschedulable"},
                                  {"message", large}}};
  EXPECT_LT(KeptBytes(*ReadStoredPod(pod)), kMostOfAPod);
}

TEST(PodBoundsTest, OfManyResourcesThoseThatMatterCount) {
  Json pod = FatMember("n0");
  Json& requests = pod["spec"]["containers"][0]["resources"]["requests"];
  for (int i = 0; i < 20'000; ++i) requests[absl::StrCat("a.b/", i)] = "1";
  requests[std::string(1000, 'r')] = "1";
  requests["nvidia.com/gpu"] = "8";
  requests["memory"] = "1Gi";
  const std::optional<StoredPod> stored = ReadStoredPod(pod);
  EXPECT_LT(KeptBytes(*stored), kMostOfAPod);
  for (const char* name : {"cpu", "memory", "pods", "rdma/hca", "nvidia.com/gpu"}) {
    EXPECT_TRUE(stored->requests->contains(name)) << name;
  }
}

// The pods of gangs are not sent where claims are not known.
TEST(PodBoundsTest, APodWithTooManyClaimsKeepsOthersAway) {
  Json pod = FatMember("n0");
  LargeFields()[3].fill(pod, 20'000);
  const std::optional<StoredPod> stored = ReadStoredPod(pod);
  ASSERT_EQ(stored->claims->apart.size(), 1U);
  const KeepApart& apart = stored->claims->apart.front();
  EXPECT_TRUE(apart.IsAbout("another", Labels{{"a", "b"}}));
  EXPECT_EQ(apart.topology_key, "kubernetes.io/hostname");
}

// A pod that was released by an operator without bounds has its node by its host name.
TEST(PodBoundsTest, TheNodeOfAReleasedPodStaysKnown) {
  Json pod = FatMember("");
  pod["spec"].erase("schedulingGates");
  pod["metadata"]["annotations"]["railhead.io/placement"] = "p";
  LargeFields()[0].fill(pod, 20'000);
  pod["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", "h0"}, {"zone", "z"}};
  EXPECT_EQ(ReadStoredPod(pod)->member->rules->selector,
            (Labels{{"kubernetes.io/hostname", "h0"}}));
}

}  // namespace
}  // namespace railhead::op::gangs
