// SPDX-License-Identifier: Apache-2.0
#include "cli/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/folder_for_test.h"
#include "cli/plan.h"
#include "kube/testing/fake_api.h"

namespace railhead::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Node(const std::string& name) {
  return {
      {"kind", "Node"},
      {"metadata",
       {{"name", name},
        {"labels",
         {{"kubernetes.io/hostname", name},
          {"topology.railhead.io/spine", "s"},
          {"topology.railhead.io/leaf", "l"}}}}},
      {"status", {{"allocatable", {{"pods", "110"}, {"rdma/hca", "8"}, {"nvidia.com/gpu", "8"}}}}}};
}

json Pod(int index) {
  const json requests = {{"rdma/hca", "8"}, {"nvidia.com/gpu", "8"}};
  return {{"kind", "Pod"},
          {"metadata",
           {{"name", absl::StrCat("train-", index)},
            {"namespace", "team"},
            {"uid", absl::StrCat("u", index)},
            {"labels", {{"railhead.io/gang", "train"}}},
            {"annotations", {{"railhead.io/gang-size", "3"}}}}},
          {"spec",
           {{"schedulingGates", json::array({{{"name", "railhead.io/gang"}}})},
            {"containers", json::array({{{"resources", {{"requests", requests}}}}})}}}};
}

class WhyTest : public ::testing::Test {
 protected:
  int Run(kube::Api* api = nullptr) {
    out_.str("");
    err_.str("");
    return RunWhy(options_, api, absl::UnixEpoch, out_, err_);
  }
  std::string Cluster(int nodes) {
    json list = {{"kind", "List"}, {"items", json::array()}};
    for (int i = 0; i < nodes; ++i) list["items"].push_back(Node(absl::StrCat("n", i)));
    for (int i = 0; i < 3; ++i) list["items"].push_back(Pod(i));
    return folder_.Write("cluster.json", list.dump());
  }

  const FolderForTest folder_;
  WhyOptions options_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(WhyTest, AGangWithoutRoomIsExplained) {
  options_.job = "train";
  options_.files = {Cluster(2)};
  EXPECT_EQ(Run(), kPending) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("Gang team/train: waiting, 3 pods, 0 on a node, 3 gated"));
  EXPECT_THAT(out_.str(), HasSubstr("fits with 2 pods instead of 3"));
  options_.json = true;
  EXPECT_EQ(Run(), kPending);
  const json answer = json::parse(out_.str());
  EXPECT_EQ(answer["state"], "waiting");
  EXPECT_EQ(answer["gated"], 3);
  bool change = false;
  for (const json& reason : answer["reasons"])
    change = change || reason.value("change", "") == "pods";
  EXPECT_TRUE(change) << out_.str();
}

TEST_F(WhyTest, AGangWithRoomIsAboutToRun) {
  options_.job = "train";
  options_.files = {Cluster(3)};
  EXPECT_EQ(Run(), kRuns) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("3 pods on 3 nodes"));
}

TEST_F(WhyTest, AGangThatFitsAndIsNotStartedIsPending) {
  options_.job = "train";
  kube::testing::FakeApi api;
  json list = {{"kind", "List"}, {"items", json::array()}};
  for (int i = 0; i < 3; ++i) {
    json pod = Pod(i);
    pod["metadata"].erase("namespace");
    pod["metadata"]["creationTimestamp"] = "1969-12-31T22:00:00Z";
    list["items"].push_back(pod);
    list["items"].push_back(Node(absl::StrCat("n", i)));
    api.Put({"v1", "pods", "", absl::StrCat("train-", i)}, pod);
    api.Put({"v1", "nodes", "", absl::StrCat("n", i)}, Node(absl::StrCat("n", i)));
  }
  const char* const note = "fits, but the operator has not started it for 2h; see ";
  EXPECT_EQ(Run(&api), kPending) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr(note));
  // In files it is as old as it was when they were written.
  options_.files = {folder_.Write("cluster.json", list.dump())};
  EXPECT_EQ(Run(), kRuns) << out_.str();
  list["items"][1]["status"]["conditions"] = {
      {{"type", "Ready"}, {"status", "True"}, {"lastHeartbeatTime", "1970-01-01T00:00:00Z"}}};
  options_.files = {folder_.Write("later.json", list.dump())};
  EXPECT_EQ(Run(), kPending) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr(note));
  options_.json = true;
  EXPECT_EQ(Run(), kPending);
  EXPECT_THAT(json::parse(out_.str())["notes"][0], HasSubstr(note));
}

TEST_F(WhyTest, TheClusterIsAskedWhereThereAreNoFiles) {
  kube::testing::FakeApi api;
  for (const char* name : {"n0", "n1"}) api.Put({"v1", "nodes", "", name}, Node(name));
  for (int i = 0; i < 3; ++i) {
    json pod = Pod(i);
    pod["metadata"].erase("namespace");
    api.Put({"v1", "pods", "", absl::StrCat("train-", i)}, pod);
  }
  options_.job = "train";
  EXPECT_EQ(Run(&api), kPending) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("room for 2 of 3 pods"));
}

TEST_F(WhyTest, NodesAreWhereTheFabricTopologySays) {
  kube::testing::FakeApi api;
  for (const char* name : {"n0", "n1", "n2"}) api.Put({"v1", "nodes", "", name}, Node(name));
  for (int i = 0; i < 2; ++i) {
    json pod = Pod(i);
    pod["metadata"].erase("namespace");
    pod["metadata"]["annotations"]["railhead.io/gang-size"] = "2";
    pod["metadata"]["annotations"]["railhead.io/require-level"] = "row";
    api.Put({"v1", "pods", "", absl::StrCat("train-", i)}, pod);
  }
  options_.job = "train";
  EXPECT_EQ(Run(&api), kPending);
  EXPECT_THAT(out_.str() + err_.str(), HasSubstr("row"));
  api.Put({"railhead.io/v1alpha1", "fabrictopologies", "", "cluster"}, json::parse(R"({
    "apiVersion": "railhead.io/v1alpha1", "kind": "FabricTopology",
    "metadata": {"name": "cluster"}, "spec": {"model": {
      "topology": "fat-tree", "levels": ["row"], "rails": 8, "domains": [
        {"name": "r0", "nodes": [{"name": "n0", "gpus": 8, "hcas": 8}]},
        {"name": "r1", "nodes": [{"name": "n1", "gpus": 8, "hcas": 8},
                                 {"name": "n2", "gpus": 8, "hcas": 8}]}]}}})"));
  EXPECT_EQ(Run(&api), kRuns) << out_.str() << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("2 pods on 2 nodes; domains used: row 1"));
}

TEST_F(WhyTest, ASavedDecisionIsExplained) {
  PlanOptions plan;
  plan.fabric = folder_.Write("fabric.yaml", R"(apiVersion: railhead.io/v1alpha1
kind: FabricModel
metadata: {name: small}
spec:
  topology: fat-tree
  levels: [leaf]
  rails: 8
  domains:
  - {name: l, nodes: [{name: a, gpus: 8, hcas: 8}, {name: b, gpus: 8, hcas: 8, usedGpus: 8}]}
)");
  plan.request = folder_.Write("request.yaml", R"(apiVersion: railhead.io/v1alpha1
kind: PlacementRequest
metadata: {name: job-a}
spec: {pods: 2, gpusPerPod: 8, hcasPerPod: 8}
)");
  plan.save = folder_.Path("decision.json");
  std::ostringstream ignored;
  ASSERT_EQ(RunPlan(
                plan, [] { return 0.0; }, ignored, ignored),
            kNotPlaced);
  options_.decision = plan.save;
  EXPECT_EQ(Run(), kPending) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("Decision job-a: waiting, 2 pods"));
  EXPECT_THAT(out_.str(), HasSubstr("1 of 2 nodes excluded: GPUs in use"));
}

TEST_F(WhyTest, WaitingForAPreferredLevelIsTold) {
  json list = {{"kind", "List"}, {"items", json::array()}};
  for (int i = 0; i < 4; ++i) {
    json node = Node(absl::StrCat("n", i));
    node["metadata"]["labels"]["topology.railhead.io/leaf"] = i < 2 ? "l0" : "l1";
    list["items"].push_back(node);
  }
  for (int i = 0; i < 3; ++i) {
    json pod = Pod(i);
    pod["metadata"]["creationTimestamp"] = "1970-01-01T00:00:00Z";
    pod["metadata"]["annotations"]["railhead.io/prefer-level"] = "leaf";
    pod["metadata"]["annotations"]["railhead.io/prefer-wait"] = "5m";
    list["items"].push_back(pod);
  }
  options_.job = "train";
  options_.files = {folder_.Write("cluster.json", list.dump())};
  EXPECT_EQ(Run(), kPending) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\n  it waits for one leaf until 00:05:00 UTC "
                                    "(railhead.io/prefer-wait)\n"));
  EXPECT_THAT(out_.str(), HasSubstr("any of these changes would help:\n"));
  EXPECT_THAT(out_.str(), HasSubstr("  fits without railhead.io/prefer-wait\n"));
  options_.json = true;
  EXPECT_EQ(Run(), kPending) << err_.str();
  EXPECT_THAT(json::parse(out_.str())["notes"], ::testing::SizeIs(1));
}

TEST_F(WhyTest, BadInputIsNamed) {
  options_.job = "nobody";
  options_.files = {Cluster(2)};
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_THAT(err_.str(),
              HasSubstr("railhead why: no gang, owner of pods or pod has the name nobody"));
  options_.files = {folder_.Write("bad.json", "{")};
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_THAT(err_.str(), HasSubstr("bad.json"));
  options_.files = {folder_.Write("none.json", R"({"items": []})")};
  EXPECT_EQ(Run(), kBadInput);
  EXPECT_THAT(err_.str(),
              HasSubstr("has no nodes; give the output of `kubectl get nodes,pods,events"));
}

// A webhook's or a scheduler's words may have come from anybody.
TEST_F(WhyTest, NothingThatOthersWroteControlsTheTerminal) {
  json pod = Pod(0);
  pod["metadata"].erase("labels");
  pod["metadata"].erase("annotations");
  pod["spec"].erase("schedulingGates");
  pod["status"] = {
      {"conditions",
       json::array(
           {{{"type", "PodScheduled"},
             {"status", "False"},
             {"reason", "Unschedulable"},
             {"message", "no\x1b]52;c;aGk=\x07 node\nGang team/train: running\u202e\u009b"}}})}};
  options_.job = "train-0";
  options_.files = {folder_.Write(
      "cluster.json",
      json{{"kind", "List"}, {"items", json::array({Node("n0"), std::move(pod)})}}.dump())};
  EXPECT_EQ(Run(), kPending) << err_.str();
  EXPECT_THAT(out_.str(),
              HasSubstr("no\\x1b]52;c;aGk=\\x07 node\\nGang team/train: running\\u202e\\x9b\n"));
  options_.json = true;
  EXPECT_EQ(Run(), kPending) << err_.str();
  for (const char c : out_.str()) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << int{c};
}

}  // namespace
}  // namespace railhead::cli
