// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/rdma_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/admission/mutation.h"
#include "operator/objects/resources.h"
#include "operator/verdict/node_facts.h"
#include "operator/verdict/pod_facts.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::HasSubstr;

RdmaResources Listed() {
  return *RdmaResources::Parse({"rdma/*", "nvidia.com/hostdev", "openshift.io/*"});
}

TEST(RdmaResourcesTest, NamesAndBeginnings) {
  const RdmaResources rdma = Listed();
  for (const char* name : {"rdma/hca", "rdma/", "nvidia.com/hostdev", "openshift.io/mlx"}) {
    EXPECT_TRUE(rdma.Contains(name)) << name;
  }
  for (const char* name : {"", "rdma", "nvidia.com/hostdevs", "nvidia.com/gpu", "x/rdma/hca"}) {
    EXPECT_FALSE(rdma.Contains(name)) << name;
  }
  EXPECT_TRUE(RdmaResources().Contains("rdma/hca"));
  EXPECT_FALSE(RdmaResources().Contains("nvidia.com/hostdev"));
}

TEST(RdmaResourcesTest, WhatIsNoResourceOrMeansGpusIsRefusedWithTheNearestSpelling) {
  const auto error = [](const std::vector<std::string>& patterns) {
    return std::string(RdmaResources::Parse(patterns).status().message());
  };
  EXPECT_THAT(error({}), HasSubstr("must list 1 to 32"));
  EXPECT_THAT(error(std::vector<std::string>(33, "rdma/*")), HasSubstr("must list 1 to 32"));
  for (const char* pattern : {"", "*", "rdma", "/", "/hca", "rdma/", "Rdma/hca", "rdma/h*a",
                              "rdma/hca/0", "rdma /hca", "-/x", "rdma/h\n"}) {
    EXPECT_THAT(error({pattern}), HasSubstr("must be the name of a resource")) << pattern;
  }
  EXPECT_THAT(error({"rdma"}), HasSubstr("did you mean rdma/*?"));
  EXPECT_THAT(error({"nvidia.com/host dev"}), HasSubstr("did you mean nvidia.com/hostdev?"));
  for (const char* pattern : {"nvidia.com/gpu", "nvidia.com/*", "nvidia.com/g*", "amd.com/*"}) {
    EXPECT_THAT(error({pattern}), HasSubstr("which is a GPU")) << pattern;
  }
  EXPECT_THAT(error({"node.kubernetes.io/x"}), HasSubstr("belongs to Kubernetes itself"));
  EXPECT_THAT(error({"rdma/*", "a.com/b", "rdma/*"}), HasSubstr("'rdma/*' appears twice"));
}

TEST(RdmaResourcesTest, DevicesOfAClass) {
  const auto rdma = RdmaResources::Parse({"deviceclass.resource.kubernetes.io/roce-*", "rdma/*"});
  ASSERT_TRUE(rdma.ok()) << rdma.status();
  EXPECT_TRUE(rdma->Contains("deviceclass.resource.kubernetes.io/roce-nic"));
  EXPECT_FALSE(rdma->Contains("deviceclass.resource.kubernetes.io/gpu.nvidia.com"));
  for (const char* pattern : {"deviceclass.resource.kubernetes.io/*",
                              "deviceclass.resource.kubernetes.io/gpu.nvidia.com"}) {
    EXPECT_THAT(std::string(RdmaResources::Parse({pattern}).status().message()),
                HasSubstr("which is a GPU"));
  }
  EXPECT_FALSE(RdmaResources::Parse({"resource.kubernetes.io/roce-nic"}).ok());
}

// The same list decides everywhere.
TEST(RdmaResourcesTest, AdmissionVerdictAndGangsGoByTheList) {
  const Json resources = {{"nvidia.com/hostdev", "2"}, {"nvidia.com/gpu", "2"}};
  const Json pod = {
      {"metadata", {{"name", "p"}}},
      {"spec",
       {{"containers",
         {{{"name", "c"}, {"resources", {{"limits", resources}, {"requests", resources}}}}}}}}};
  const Json node = {{"status", {{"allocatable", resources}, {"capacity", resources}}}};
  for (const bool listed : {false, true}) {
    InjectionConfig config;
    if (listed) config.rdma_resources = Listed();
    const RdmaResources& rdma = config.rdma_resources;
    EXPECT_EQ(MutatePod(pod, config, ProfileSet(), "team").outcome,
              listed ? Outcome::kMutated : Outcome::kIgnored);
    EXPECT_EQ(verdict::PodFactsOf(pod, rdma).has_value(), listed);
    EXPECT_EQ(verdict::NodeFactsOf(node, rdma).allocatable.contains("nvidia.com/hostdev"), listed);
    EXPECT_EQ(gangs::HcasIn(gangs::RequestsOf(pod["spec"]), rdma), listed ? 2 : 0);
  }
}

}  // namespace
}  // namespace railhead::op
