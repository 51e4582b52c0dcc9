// SPDX-License-Identifier: Apache-2.0
#include "cli/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/folder_for_test.h"

namespace railhead::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kFabric[] = R"(apiVersion: railhead.io/v1alpha1
kind: FabricModel
metadata: {name: small}
spec:
  topology: rail-optimized
  levels: [spine, leaf]
  rails: 8
  domains:
  - name: sp00
    domains:
    - name: lf000
      nodes: [{name: a0, gpus: 8, hcas: 8}, {name: a1, gpus: 8, hcas: 8, usedGpus: 8}]
    - name: lf001
      nodes: [{name: b0, gpus: 8, hcas: 8}, {name: b1, gpus: 8, hcas: 8}]
  - name: sp01
    domains:
    - name: lf002
      nodes: [{name: c0, gpus: 8, hcas: 8, unschedulable: taint maintenance}]
)";

constexpr char kRequest[] = R"(apiVersion: railhead.io/v1alpha1
kind: PlacementRequest
metadata: {name: job-a}
spec: {pods: 3, gpusPerPod: 8, hcasPerPod: 8, preferLevel: leaf}
)";

class Plan : public ::testing::Test {
 protected:
  Plan() {
    options_.fabric = folder_.Write("fabric.yaml", kFabric);
    options_.request = folder_.Write("request.yaml", kRequest);
    options_.json = true;
  }

  int Run() {
    out_.str("");
    err_.str("");
    double now = 0;
    return RunPlan(
        options_, [&now] { return now += 0.25; }, out_, err_);
  }

  json Answer() { return json::parse(out_.str()); }

  const FolderForTest folder_;
  PlanOptions options_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(Plan, PrintsTheContractsJson) {
  EXPECT_EQ(Run(), kPlaced) << err_.str();
  EXPECT_EQ(Answer(), json::parse(R"({
    "placed": true,
    "assignment": [{"rank": 0, "node": "a0"}, {"rank": 1, "node": "b0"}, {"rank": 2, "node": "b1"}],
    "score": {"domains": {"spine": 1, "leaf": 2}, "ringCrossings": {"spine": 0, "leaf": 2},
              "patternCrossings": {"spine": 0, "leaf": 2}, "railMismatches": 0,
              "preferLevelMet": false, "optimal": true},
    "solveSeconds": 0.25, "reasons": []})"));
}

TEST_F(Plan, SaysWhyAGangHasNoPlace) {
  folder_.Write("request.yaml", absl::StrReplaceAll(kRequest, {{"pods: 3", "pods: 5"}}));
  EXPECT_EQ(Run(), kNotPlaced);
  const json answer = Answer();
  EXPECT_EQ(answer["placed"], false);
  EXPECT_TRUE(answer["assignment"].empty());
  EXPECT_EQ(answer["reasons"][0], json::parse(R"({"cause": "GPUs in use", "nodes": 1,
    "message": "1 of 5 nodes excluded: GPUs in use"})"));
  EXPECT_EQ(answer["reasons"][1]["cause"], "unschedulable: taint maintenance");
  EXPECT_EQ(answer["reasons"][3]["change"], "nodes");
  EXPECT_EQ(answer["reasons"][3]["nodes"], 2);
  EXPECT_EQ(answer["reasons"][4]["message"], "fits with 3 pods instead of 5");
  options_.json = false;
  EXPECT_EQ(Run(), kNotPlaced);
  EXPECT_THAT(out_.str(), HasSubstr("job-a: 5 pods of 8 GPUs and 8 HCAs: NOT PLACED"));
  EXPECT_THAT(out_.str(), HasSubstr("  -> fits with 3 pods instead of 5\n"));
}

TEST_F(Plan, ExplainsWithTheRailsThatPodsShare) {
  folder_.Write("fabric.yaml", R"(apiVersion: railhead.io/v1alpha1
kind: FabricModel
metadata: {name: small}
spec:
  topology: rail-optimized
  levels: [spine]
  rails: 8
  domains:
  - name: sp00
    nodes:
    - {name: a0, gpus: 8, hcas: 8, deadRails: [0]}
    - {name: a1, gpus: 8, hcas: 8, deadRails: [0]}
    - {name: a2, gpus: 8, hcas: 8}
    - {name: a3, gpus: 8, hcas: 8}
  - name: sp01
    nodes: [{name: b0, gpus: 8, hcas: 8}, {name: b1, gpus: 8, hcas: 8}]
)");
  folder_.Write("request.yaml", R"(apiVersion: railhead.io/v1alpha1
kind: PlacementRequest
metadata: {name: job-a}
spec: {pods: 4, gpusPerPod: 8, hcasPerPod: 4, sameRails: true}
)");
  options_.explain = true;
  EXPECT_EQ(Run(), kPlaced) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("why 2 spines: 1 hold at most 2 of 4 pods"));
}

TEST_F(Plan, PodsOfAPartOfANodeGetTheSameRailsOnANodeEach) {
  folder_.Write("fabric.yaml", R"(apiVersion: railhead.io/v1alpha1
kind: FabricModel
metadata: {name: small}
spec:
  topology: rail-optimized
  levels: [leaf]
  rails: 8
  domains:
  - name: lf00
    nodes:
    - {name: a, gpus: 8, hcas: 8}
    - {name: b, gpus: 8, hcas: 8}
    - {name: c, gpus: 8, hcas: 8}
    - {name: d, gpus: 8, hcas: 8}
)");
  constexpr char kHalves[] = R"(apiVersion: railhead.io/v1alpha1
kind: PlacementRequest
metadata: {name: job-a}
spec: {pods: 4, gpusPerPod: 4, hcasPerPod: 4, sameRails: true}
)";
  folder_.Write("request.yaml", kHalves);
  EXPECT_EQ(Run(), kPlaced) << err_.str();
  EXPECT_EQ(Answer()["assignment"], json::parse(R"([
    {"rank": 0, "node": "a"}, {"rank": 1, "node": "b"},
    {"rank": 2, "node": "c"}, {"rank": 3, "node": "d"}])"));
  EXPECT_EQ(Answer()["score"]["railMismatches"], 0);
  folder_.Write("request.yaml", absl::StrReplaceAll(kHalves, {{"pods: 4", "pods: 5"}}));
  EXPECT_EQ(Run(), kNotPlaced);
  EXPECT_THAT(out_.str(), HasSubstr("fits if pods may get different rails (without sameRails)"));
  folder_.Write("request.yaml",
                absl::StrReplaceAll(kHalves, {{"pods: 4", "pods: 5"}, {"true", "false"}}));
  EXPECT_EQ(Run(), kPlaced);
  EXPECT_EQ(Answer()["score"]["railMismatches"], 4);
}

TEST_F(Plan, DrawsWhatIsUsed) {
  options_.json = false;
  EXPECT_EQ(Run(), kPlaced);
  EXPECT_EQ(out_.str(),
            "job-a: 3 pods of 8 GPUs and 8 HCAs: placed in 1 spine, 2 leaves of fabric small "
            "(proven best)\n"
            "ring neighbours in different domains: spine 0, leaf 2; on different rails: 0\n"
            "\n"
            "sp00  3 of 3 free places, ranks 0 to 2\n"
            "  lf000  [#.]  1 of 1 free places, rank 0\n"
            "  lf001  [##]  2 of 2 free places, ranks 1 to 2\n"
            "(1 spine not used)\n"
            "# node of this job   + node with room left   . node without room\n");
}

TEST_F(Plan, Explains) {
  options_.explain = true;
  EXPECT_EQ(Run(), kPlaced);
  const std::string lines = Answer()["explanation"].dump();
  EXPECT_THAT(lines, HasSubstr("1 of 5 nodes excluded: GPUs in use"));
  EXPECT_THAT(lines, HasSubstr("one spine holds all pods"));
  EXPECT_THAT(lines, HasSubstr("preferLevel leaf: not met"));
}

TEST_F(Plan, BadInputIsNamed) {
  folder_.Write("request.yaml", absl::StrReplaceAll(kRequest, {{"leaf", "rack"}}));
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_THAT(err_.str(), HasSubstr(options_.request + ":4: spec.preferLevel: \"rack\""));
  EXPECT_EQ(out_.str(), "");
  folder_.Write("fabric.yaml", absl::StrReplaceAll(kFabric, {{"b1", "b0"}}));
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_THAT(err_.str(), HasSubstr(options_.fabric + ":14: spec.domains[0].domains[1].nodes[1]"));
  options_.fabric = folder_.Path("none.yaml");
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_THAT(err_.str(), HasSubstr("cannot open " + options_.fabric));
  options_.fabric = folder_.path();
  EXPECT_EQ(Run(), kBadInput);
}

TEST_F(Plan, WhatIsSavedCanBeAskedAgain) {
  options_.save = folder_.Path("decision.json");
  EXPECT_EQ(Run(), kPlaced);
  const json first = Answer();
  options_ = PlanOptions{};
  options_.replay = folder_.Path("decision.json");
  options_.json = true;
  EXPECT_EQ(Run(), kPlaced) << err_.str();
  EXPECT_EQ(Answer(), first);

  std::ifstream file(options_.replay);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  folder_.Write("decision.json", absl::StrReplaceAll(text, {{R"("b0","b1"])", R"("b1","b0"])"}}));
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_THAT(err_.str(), HasSubstr("rank 1 was on b1, and is now on b0"));
}

TEST_F(Plan, AnAnswerThatCannotBeSavedIsAnError) {
  options_.save = folder_.Path("none/decision.json");
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_THAT(err_.str(), HasSubstr("cannot write"));
}

}  // namespace
}  // namespace railhead::cli
