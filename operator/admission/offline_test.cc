// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/offline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kube/json.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kManifests[] = R"(
apiVersion: v1
kind: Service
metadata: {name: ring}
spec: {clusterIP: None}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      containers:
      - name: main
        resources: {limits: {rdma/hca: 2}}
)";

TEST(MutateOfflineTest, PrintsAllObjectsAsTheyWouldBeStored) {
  const auto result = MutateOffline(kManifests, {}, {}, OfflineOutput::kObject);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->warnings, ElementsAre(HasSubstr("Job train: railhead: no MASTER_ADDR")));
  const size_t second = result->text.find("\n{") + 1;
  EXPECT_EQ(Json::parse(result->text.substr(0, second))["kind"], "Service");
  const Json job = Json::parse(result->text.substr(second));
  EXPECT_EQ(job["spec"]["template"]["metadata"]["annotations"]["railhead.io/world-size"], "2");
  EXPECT_EQ(job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["rdma/hca"], 2);
}

TEST(MutateOfflineTest, PrintsPatches) {
  InjectionConfig config;
  config.environment["NCCL_DEBUG"] = "INFO";
  const auto result = MutateOffline(
      R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers":
          [{"name": "c", "resources": {"limits": {"rdma/hca": "1"}}}]}})",
      config, {}, OfflineOutput::kPatch);
  ASSERT_TRUE(result.ok()) << result.status();
  const Json patch = Json::parse(result->text);
  EXPECT_EQ(patch[0]["path"], "/spec/containers/0/env");
  EXPECT_EQ(patch[0]["value"][2], Json::parse(R"({"name": "NCCL_DEBUG", "value": "INFO"})"));
}

TEST(MutateOfflineTest, ExplainsWhatComesFromAProfile) {
  ProfileSet set;
  set.profiles.resize(1);
  set.profiles[0].name = "p";
  set.profiles[0].namespaces.labels = {{"kubernetes.io/metadata.name", "default"}};
  set.profiles[0].settings = {{"nccl.qpsPerConnection", "4"}, {"nccl.debug", "INFO"}};
  const auto result = MutateOffline(
      R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers":
          [{"name": "c", "resources": {"limits": {"rdma/hca": "1"}},
            "env": [{"name": "NCCL_DEBUG", "value": "WARN"}]}]}})",
      {}, set, OfflineOutput::kObject);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(
      result->reasons,
      ElementsAre("Pod x: NCCL_DEBUG=INFO (p@0: spec.nccl.debug), except in containers that "
                  "set it themselves",
                  "Pod x: NCCL_IB_QPS_PER_CONNECTION=4 (p@0: spec.nccl.qpsPerConnection)",
                  "Pod x: RAILHEAD_FALLBACK=warn (p@0: spec.requireRDMA)"));
}

TEST(MutateOfflineTest, RefusesWhatIsNoManifest) {
  for (const char* text :
       {"- a\n", "text", "{}", "kind: Pod", "a: [", "kind: [1]\napiVersion: v1"}) {
    EXPECT_EQ(MutateOffline(text, {}, {}, OfflineOutput::kObject).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

}  // namespace
}  // namespace railhead::op
