// SPDX-License-Identifier: Apache-2.0
#include "placement/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"

namespace railhead::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kJob[] = R"(apiVersion: railhead.io/v1alpha1
kind: PlacementRequest
metadata: {name: job-a}
spec:
  pods: 64
  gpusPerPod: 8
  hcasPerPod: 8
  requireLevel: spine
  preferLevel: leaf
  parallelism: {tp: 8, pp: 4, dp: 16}
  pattern: alltoall
  sameRails: true
)";

absl::StatusOr<PlacementRequest> Parse(const std::string& text) {
  return ParsePlacementRequest(text, "request.yaml", {"spine", "leaf"});
}

TEST(PlacementRequest, ReadsTheContractsExample) {
  const absl::StatusOr<PlacementRequest> request = Parse(kJob);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->name, "job-a");
  EXPECT_EQ(request->pods, 64);
  EXPECT_EQ(request->gpus_per_pod, 8);
  EXPECT_EQ(request->hcas_per_pod, 8);
  EXPECT_EQ(request->require_level, "spine");
  EXPECT_EQ(request->prefer_level, "leaf");
  EXPECT_THAT(request->parallelism, ElementsAre(Pair("tp", 8), Pair("pp", 4), Pair("dp", 16)));
  EXPECT_EQ(request->pattern, Pattern::kAllToAll);
  EXPECT_TRUE(request->same_rails);
}

TEST(PlacementRequest, MostIsOptional) {
  const absl::StatusOr<PlacementRequest> request = Parse(R"({"apiVersion": "railhead.io/v1alpha1",
    "kind": "PlacementRequest", "metadata": {"name": "j"},
    "spec": {"pods": 1, "gpusPerPod": 1, "hcasPerPod": 0}})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->require_level, "");
  EXPECT_FALSE(request->same_rails);
  EXPECT_EQ(request->pattern, Pattern::kRing);
}

TEST(PlacementRequest, RefusesWithFileLineAndField) {
  const struct {
    const char* from;
    const char* to;
    const char* message;
  } cases[] = {
      {"PlacementRequest", "FabricModel", "request.yaml:2: kind: must be PlacementRequest"},
      {"pods: 64", "pods: 0",
       "request.yaml:5: spec.pods: must be a whole number from 1 to 1000000"},
      {"pods: 64", "pods: -3", "spec.pods: must be"},
      {"pods: 64", "pods: 1e3", "spec.pods: must be"},
      {"  pods: 64\n", "", "spec.pods: is missing"},
      {"gpusPerPod: 8", "gpuPerPod: 8",
       "request.yaml:6: spec.gpuPerPod: this field is not known; did "
       "you mean gpusPerPod?"},
      {"PerPod: 8", "PerPod: 0", "spec: pods without GPUs and HCAs"},
      {"requireLevel: spine", "requireLevel: rack",
       "request.yaml:8: spec.requireLevel: \"rack\" is not known here; write spine or leaf"},
      {"preferLevel: leaf", "preferLevel: leaff",
       "spec.preferLevel: \"leaff\" is not known here; did you mean leaf?"},
      {"dp: 16", "dp: 15",
       "request.yaml:10: spec.parallelism: the product of its sizes must be pods "
       "x gpusPerPod = 512, not 480"},
      {"tp: 8, pp: 4, dp: 16", "tp: 1000000, pp: 1000000, dp: 1000000, ep: 1000000",
       "spec.parallelism: the product"},
      {"dp: 16", "xp: 16", "spec.parallelism.xp: this field is not known"},
      {"dp: 16", "dp: 0", "spec.parallelism.dp: must be"},
      {"sameRails: true", "sameRails: yes",
       "request.yaml:12: spec.sameRails: \"yes\" is not known here; write true or false"},
      {"alltoall", "all", "spec.pattern: \"all\" is not known here; write ring, tree or alltoall"},
  };
  for (const auto& test : cases) {
    const std::string text = absl::StrReplaceAll(kJob, {{test.from, test.to}});
    ASSERT_NE(text, kJob) << test.from;
    const absl::Status status = Parse(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << test.to;
    EXPECT_THAT(status.message(), HasSubstr(test.message)) << test.to;
  }
}

}  // namespace
}  // namespace railhead::placement
