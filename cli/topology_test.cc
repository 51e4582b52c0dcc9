// SPDX-License-Identifier: Apache-2.0
#include "cli/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/json/json_text.h"
#include "cli/folder_for_test.h"
#include "cli/svg_parts.h"
#include "cli/svg_text.h"
#include "fabric/model/model_reader.h"
#include "kube/client.h"
#include "kube/testing/fake_api.h"

namespace railhead::cli {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Three nodes with two rails; the NICs of n2 are exchanged.
std::string Subnet(bool exchanged) {
  std::string leaves[2];
  std::string hcas;
  for (int node = 0; node < 3; ++node) {
    for (int rail = 0; rail < 2; ++rail) {
      const int leaf = exchanged && node == 2 ? 1 - rail : rail;
      absl::StrAppend(&leaves[leaf], "[", node + 1, "]\t\"H-", node, rail,
                      "\"[1]\t\t# \"x\" lid 1 4xNDR\n");
      absl::StrAppend(&hcas, "\ncaguid=1\nCa\t1 \"H-", node, rail, "\"\t\t# \"n", node, " mlx5_",
                      rail, "\"\n[1]\t\"S-", leaf, "\"[", node + 1,
                      "]\t\t# lid 1 lmc 0 \"x\" lid 1 4xNDR\n");
    }
  }
  return absl::StrCat("# Topology file: \n\nSwitch\t9 \"S-0\"\t\t# \"leaf<0>\"\n", leaves[0],
                      "[9]\t\"S-2\"[1]\n\nSwitch\t9 \"S-1\"\t\t# \"leaf<1>\"\n", leaves[1],
                      "[9]\t\"S-2\"[2]\n\nSwitch\t9 \"S-2\"\t\t# \"spine\"\n[1]\t\"S-0\"[9]\n"
                      "[2]\t\"S-1\"[9]\n",
                      hcas);
}

constexpr char kNodes[] = R"({"apiVersion": "v1", "kind": "List", "items": [
 {"kind": "Node", "metadata": {"name": "n0", "uid": "u0", "annotations": {"railhead.io/node-facts":
   "{\"version\":1,\"rails\":[{\"rail\":0,\"device\":\"mlx5_0\",\"usable\":true},{\"rail\":1,\"device\":\"mlx5_1\",\"usable\":false}]}"}},
  "status": {"allocatable": {"nvidia.com/gpu": "8"}}},
 {"kind": "Node", "metadata": {"name": "n1", "uid": "u1", "annotations": {"railhead.io/node-facts":
   "{\"version\":1,\"rails\":[{\"rail\":0,\"device\":\"mlx5_0\",\"usable\":true},{\"rail\":1,\"device\":\"mlx5_1\",\"usable\":true}]}"}},
  "spec": {"unschedulable": true}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}},
 {"kind": "Node", "metadata": {"name": "n2", "uid": "u2", "annotations": {"railhead.io/node-facts":
   "{\"version\":1,\"rails\":[{\"rail\":0,\"device\":\"mlx5_0\",\"usable\":true},{\"rail\":1,\"device\":\"mlx5_1\",\"usable\":true}]}"}},
  "status": {"allocatable": {"nvidia.com/gpu": "8"}}},
 {"kind": "Pod", "spec": {"nodeName": "n2", "containers": [{"resources": {"requests": {"nvidia.com/gpu": "3"}}}]}}]})";

class Topology : public ::testing::Test {
 protected:
  Topology() {
    options_.files = {folder_.Write("subnet.txt", Subnet(false)),
                      folder_.Write("nodes.json", kNodes)};
  }
  int Run(kube::Api* api = nullptr) {
    out_.str("");
    err_.str("");
    return RunTopology(options_, api, out_, err_);
  }

  const FolderForTest folder_;
  TopologyOptions options_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(Topology, DrawsATree) {
  EXPECT_EQ(Run(), kNoTrouble) << err_.str();
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(out_.str(),
            "fabric discovered: rail-optimized, 2 rails, 1 spine, 1 leaf, 3 nodes, 21 of 24 GPUs "
            "free, 5 of 6 HCAs free, 1 dead rail, 1 not schedulable\n"
            "\n"
            "spine spine  3 nodes, 21 of 24 GPUs free, 5 of 6 HCAs free, 1 dead rail, 1 not "
            "schedulable\n"
            "  leaf leaf<0>  3 nodes, 21 of 24 GPUs free, 5 of 6 HCAs free, 1 dead rail, 1 not "
            "schedulable  [leaf<0> leaf<1>]\n"
            "    n0  |x  8 of 8 GPUs free\n"
            "    n1  ||  8 of 8 GPUs free  cordoned\n"
            "    n2  ||  5 of 8 GPUs free\n"
            "rails: | up   x dead   ! cable at the wrong switch   . no NIC\n");
}

TEST_F(Topology, TheClusterIsAskedWhereThereAreNoFiles) {
  kube::testing::FakeApi api;
  const json list = json::parse(kNodes);
  for (json item : list["items"]) {
    if (item["kind"] == "Pod") {
      item["metadata"]["name"] = "holder";
      item["apiVersion"] = "v1";
      api.Put({"v1", "pods", "", "holder"}, item);
      continue;
    }
    item["apiVersion"] = "v1";
    item["metadata"]["labels"]["topology.railhead.io/leaf"] = "l0";
    api.Put({"v1", "nodes", "", item["metadata"]["name"]}, item);
  }
  options_.files.clear();
  EXPECT_EQ(Run(&api), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("leaf l0  3 nodes, 21 of 24 GPUs free"));
  // What people have written counts instead of labels, and its nodes are as they tell.
  const kube::ObjectRef fabric = {"railhead.io/v1alpha1", "fabrictopologies", "", "cluster"};
  api.Put(fabric, json::parse(R"({
    "apiVersion": "railhead.io/v1alpha1", "kind": "FabricTopology",
    "metadata": {"name": "cluster"}, "spec": {"model": {
      "topology": "rail-optimized", "levels": ["row"], "rails": 2, "domains": [
        {"name": "r0", "nodes": [{"name": "n0", "gpus": 8, "hcas": 2},
                                 {"name": "n2", "gpus": 4, "hcas": 1}]},
        {"name": "r1", "nodes": [{"name": "n1", "gpus": 8, "hcas": 2}]}]}}})"));
  EXPECT_EQ(Run(&api), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("row r0  2 nodes, 13 of 16 GPUs free"));
  EXPECT_THAT(out_.str(), HasSubstr("row r1  1 node, 8 of 8 GPUs free"));
  EXPECT_THAT(out_.str(), HasSubstr("n0  |x  8 of 8 GPUs free"));
  options_.output = "yaml";
  EXPECT_EQ(Run(&api), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("usedGpus: 3"));
  json wrong = api.At(fabric);
  wrong["spec"]["model"]["rails"] = 0;
  api.Put(fabric, wrong);
  EXPECT_EQ(Run(&api), kTrouble);
  EXPECT_THAT(err_.str(), HasSubstr("FabricTopology cluster: spec.model"));
  EXPECT_THAT(out_.str(), HasSubstr("l0"));
}

TEST_F(Topology, AModelThatIsWrongIsNamedAlsoWhereNothingElseTells) {
  kube::testing::FakeApi api;
  api.Put({"v1", "nodes", "", "n0"},
          json::parse(R"({"apiVersion": "v1", "metadata": {"name": "n0"}, "status": {}})"));
  api.Put({"railhead.io/v1alpha1", "fabrictopologies", "", "cluster"}, json::parse(R"({
    "apiVersion": "railhead.io/v1alpha1", "kind": "FabricTopology",
    "metadata": {"name": "cluster"}, "spec": {"model": {
      "topology": "rail-optimized", "levels": ["row"], "rails": 0, "domains": [
        {"name": "r0", "nodes": [{"name": "n0", "gpus": 8, "hcas": 2}]}]}}})"));
  options_.files.clear();
  EXPECT_EQ(Run(&api), kBadSource);
  EXPECT_THAT(err_.str(), HasSubstr("FabricTopology cluster: spec.model"));
  EXPECT_THAT(err_.str(), HasSubstr("; and without it: no "));
  EXPECT_THAT(err_.str(), HasSubstr("labels of their place"));
}

TEST_F(Topology, HcasAreThoseOfTheOperatorsResources) {
  kube::testing::FakeApi api;
  const auto put = [&api](const char* kind, json item, const char* name, json resources) {
    item["apiVersion"] = "v1";
    item["metadata"]["name"] = name;
    if (item.contains("spec")) item["spec"]["containers"][0]["resources"]["requests"] = resources;
    if (item.contains("status")) item["status"]["allocatable"] = std::move(resources);
    api.Put({"v1", kind, "", name}, item);
  };
  const json node =
      json::parse(R"({"metadata": {"labels": {"topology.railhead.io/leaf": "l0"}}, "status": {}})");
  const json pod = json::parse(R"({"spec": {"nodeName": "n0", "containers": [{}]}})");
  put("nodes", node, "n0", {{"rdma/rail-0", "1"}, {"rdma/rail-1", "1"}, {"example.com/nic", "2"}});
  put("nodes", node, "n1", {{"example.com/nic", "2"}, {"example.com/other", "2"}});
  put("pods", pod, "a", {{"rdma/rail-0", "1"}});
  put("pods", pod, "b", {{"example.com/nic", "2"}});
  options_.files.clear();
  EXPECT_EQ(Run(&api), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("1 of 2 HCAs free"));
  // Any user may have a ConfigMap with the chart's labels.
  const json operators = json::parse(R"({
    "metadata": {"name": "operator", "namespace": "railhead", "labels": {
      "app.kubernetes.io/part-of": "railhead", "app.kubernetes.io/component": "operator"}},
    "data": {"operator.yaml": "rdmaResources: [rdma/*, example.com/nic]"}})");
  api.Put({"v1", "configmaps", "railhead", "operator"}, operators);
  EXPECT_EQ(Run(&api), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("1 of 2 HCAs free"));
  api.Put({"admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "", "railhead"},
          json::parse(R"({
    "metadata": {"name": "railhead", "labels": {
      "app.kubernetes.io/part-of": "railhead", "app.kubernetes.io/instance": "railhead"}},
    "webhooks": [{"clientConfig": {"service": {"namespace": "railhead"}}}]})"));
  EXPECT_EQ(Run(&api), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("3 of 6 HCAs free"));
}

// Eight HCAs shared by a thousand pods, of which one runs; and GPUs whose plugin is down.
TEST_F(Topology, AModelsNodesHaveWhatKubeletOffers) {
  kube::testing::FakeApi api;
  api.Put({"v1", "nodes", "", "n0"}, json::parse(R"({
    "apiVersion": "v1", "metadata": {"name": "n0"},
    "status": {"allocatable": {"rdma/hca": "1k", "nvidia.com/gpu": "0"}}})"));
  api.Put({"v1", "pods", "", "holder"}, json::parse(R"({
    "apiVersion": "v1", "metadata": {"name": "holder"}, "spec": {"nodeName": "n0", "containers": [
      {"resources": {"requests": {"rdma/hca": "8"}}}]}})"));
  api.Put({"railhead.io/v1alpha1", "fabrictopologies", "", "cluster"}, json::parse(R"({
    "apiVersion": "railhead.io/v1alpha1", "kind": "FabricTopology",
    "metadata": {"name": "cluster"}, "spec": {"model": {
      "topology": "rail-optimized", "levels": ["row"], "rails": 8, "domains": [
        {"name": "r0", "nodes": [{"name": "n0", "gpus": 8, "hcas": 8}]}]}}})"));
  options_.files.clear();
  EXPECT_EQ(Run(&api), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("8 of 8 HCAs free"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("GPUs free")));
}

// A cluster of 400 nodes with large objects, which are made as they are asked for.
class LargeCluster final : public kube::Api {
 public:
  absl::StatusOr<json> Call(const kube::ApiRequest& request) override {
    return kube::StatusFromAnswer(request.subject, 404, "");
  }
  absl::StatusOr<json> CallList(
      const kube::ApiRequest& request,
      absl::FunctionRef<absl::Status(const json& object)> visit) override {
    json rest = {{"metadata", {{"resourceVersion", "1"}}}, {"items", json::array()}};
    const bool pods = absl::StartsWith(request.path, "/api/v1/pods?");
    if (!pods && !absl::StartsWith(request.path, "/api/v1/nodes?")) return rest;
    constexpr int kPage = 50;
    constexpr int kAll = 400;
    int first = 0;
    const std::vector<std::string> parts = absl::StrSplit(request.path, "&continue=");
    if (parts.size() > 1 && !absl::SimpleAtoi(parts[1], &first)) return rest;
    for (int i = first; i < first + kPage; ++i) {
      const json object = pods ? Pod(i) : Node(i);
      if (absl::Status status = visit(object); !status.ok()) return status;
      most_ = std::max(most_, Allocated());
    }
    if (first + kPage < kAll) rest["metadata"]["continue"] = absl::StrCat(first + kPage);
    return rest;
  }
  absl::Status Stream(const kube::StreamRequest& /*request*/,
                      const std::function<absl::Status(absl::string_view)>& /*on_bytes*/) override {
    return absl::UnimplementedError("");
  }
  // Bytes allocated beyond those at the start.
  size_t most() const { return most_ - std::min(most_, start_); }

 private:
  static constexpr size_t kLarge = size_t{64} << 10;

  static size_t Allocated() { return mallinfo2().uordblks + mallinfo2().hblkhd; }
  static json Node(int i) {
    return {{"metadata",
             {{"name", absl::StrCat("n", i)},
              {"labels", {{"topology.railhead.io/leaf", absl::StrCat("l", i / 16)}}},
              {"annotations", {{"example.com/large", std::string(kLarge, 'x')}}}}},
            {"status", {{"allocatable", {{"nvidia.com/gpu", "8"}, {"rdma/hca", "8"}}}}}};
  }
  static json Pod(int i) {
    return {{"metadata",
             {{"name", "p"},
              {"namespace", absl::StrCat("s", i)},
              {"annotations", {{"example.com/large", std::string(kLarge, 'x')}}}}},
            {"spec",
             {{"nodeName", absl::StrCat("n", i)},
              {"containers", {{{"resources", {{"requests", {{"nvidia.com/gpu", "2"}}}}}}}}}}};
  }

  const size_t start_ = Allocated();
  size_t most_ = 0;
};

TEST_F(Topology, OneObjectOfTheClusterIsInMemoryAtATime) {
  options_.files.clear();
  LargeCluster api;
  EXPECT_EQ(Run(&api), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("25 leaves, 400 nodes, 2400 of 3200 GPUs free"));
  EXPECT_LT(api.most(), size_t{8} << 20) << "all have 50 MiB";
}

TEST_F(Topology, WrongCablesAreToldWithTheExitStatus) {
  folder_.Write("subnet.txt", Subnet(true));
  EXPECT_EQ(Run(), kTrouble);
  EXPECT_THAT(out_.str(), HasSubstr("    n2  !!  5 of 8"));
  EXPECT_THAT(err_.str(),
              HasSubstr("FAIL  miswired  n2: mlx5_0 (rail 0) is at leaf<1> port 3, where "
                        "other nodes have rail 1; most nodes of its leaf have rail 0 "
                        "at leaf<0>\n                fix: move the cable to leaf<0>\n"));
  options_.output = "json";
  EXPECT_EQ(Run(), kTrouble);
  const json answer = json::parse(out_.str());
  EXPECT_EQ(answer["findings"].size(), 2);
  EXPECT_EQ(answer["findings"][1],
            json::parse(R"({"severity": "fail", "check": "miswired", "object": "n2",
    "observed": "mlx5_1 (rail 1) is at leaf<0> port 3, where other nodes have rail 0; most nodes of its leaf have rail 1 at leaf<1>",
    "fix": "move the cable to leaf<1>", "kind": "miswired", "trouble": true,
    "message": "n2: mlx5_1 (rail 1) is at leaf<0> port 3, where other nodes have rail 0; most nodes of its leaf have rail 1 at leaf<1>; move the cable to leaf<1>"})"));
  EXPECT_EQ(answer["wires"][4], json::parse(R"({"node": "n2", "rail": 0, "nic": "mlx5_0",
    "switch": "leaf<1>", "port": "3", "gbps": 400.0, "dead": false, "miswired": true})"));
}

TEST_F(Topology, YamlIsAModelThatIsDrawnTheSame) {
  options_.output = "yaml";
  options_.name = "mine";
  EXPECT_EQ(Run(), kNoTrouble);
  const auto model = fabric::ParseFabricModel(out_.str(), "out");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name, "mine");
  EXPECT_THAT(model->nodes[0].dead_rails, ElementsAre(1));
  options_.files = {folder_.Write("model.yaml", out_.str())};
  options_.output = "text";
  EXPECT_EQ(Run(), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("    n0  |x  8 of 8 GPUs free\n"));
}

TEST_F(Topology, OtherSchedulersGetItAsObjects) {
  options_.name = "fabric";
  const auto run = [this](const char* output) {
    options_.output = output;
    EXPECT_EQ(Run(), kNoTrouble) << err_.str();
    EXPECT_EQ(err_.str(), "");
    return json::parse(out_.str());
  };
  EXPECT_EQ(run("labels")["items"][2]["metadata"]["labels"]["railhead.io/topology-node"], "n00002");
  EXPECT_EQ(run("kueue")["apiVersion"], "kueue.x-k8s.io/v1beta2");
  EXPECT_EQ(run("kai")["apiVersion"], "kai.scheduler/v1alpha1");
  EXPECT_EQ(run("volcano")["items"][1]["metadata"]["name"], "spine-spine");
  EXPECT_EQ(run("kueue")["metadata"]["name"], "fabric");
  const std::string model =
      "apiVersion: railhead.io/v1alpha1\nkind: FabricModel\nmetadata: {name: f}\nspec:\n"
      "  topology: fat-tree\n  levels: [leaf]\n  rails: 1\n  domains:\n"
      "  - {name: l2, nodes: [{name: a, gpus: 1, hcas: 1}]}\n"
      "  - {name: l1, nodes: [{name: b, gpus: 1, hcas: 1}]}\n";
  options_.output = "kueue";
  options_.files = {folder_.Write("model.yaml", model)};
  EXPECT_EQ(Run(), kNoTrouble);
  EXPECT_EQ(json::parse(out_.str())["metadata"]["name"], "fabric");
  options_.name.reset();
  EXPECT_EQ(Run(), kNoTrouble);
  EXPECT_EQ(json::parse(out_.str())["metadata"]["name"], "f");
  EXPECT_EQ(err_.str(), "note: order: the labels sort by name, not in the model's order\n");
  options_.files = {folder_.Write("model.yaml", absl::StrReplaceAll(model, {{"l2", "l01"}}))};
  EXPECT_EQ(Run(), kBadSource);
  EXPECT_EQ(out_.str(), "");
  EXPECT_THAT(err_.str(), HasSubstr("would both have the label value l00001"));
  options_.output = "volcano";
  EXPECT_EQ(Run(), kNoTrouble) << "needs no labels: " << err_.str();
}

TEST_F(Topology, LabelsMakeNoNodes) {
  options_.output = "labels";
  const std::string nodes = absl::StrReplaceAll(
      kNodes, {{R"({"kind": "Pod")", R"({"kind": "Node", "metadata": {"name": "cp", "uid": "uc"}},
                {"kind": "Pod")"},
               {R"("name": "n2", "uid": "u2")", R"("name": "other", "uid": "u2")"},
               {R"("nodeName": "n2")", R"("nodeName": "n1")"}});
  folder_.Write("nodes.json", nodes);
  Run();
  std::vector<std::string> items;
  const json answer = json::parse(out_.str());
  for (const json& item : answer["items"]) {
    const json& metadata = item["metadata"];
    items.push_back(absl::StrCat(metadata["name"].get<std::string>(), " ",
                                 metadata["uid"].get<std::string>(), " ",
                                 metadata["labels"].size()));
  }
  EXPECT_THAT(items, ElementsAre("cp uc 0", "n0 u0 3", "n1 u1 3", "other u2 0"));

  folder_.Write("nodes.json", absl::StrReplaceAll(kNodes, {{R"("uid": "u1", )", ""}}));
  EXPECT_EQ(Run(), kBadSource);
  EXPECT_EQ(out_.str(), "");
  EXPECT_THAT(err_.str(), HasSubstr("node n1 has no metadata.uid"));
  options_.files = {folder_.Path("subnet.txt")};
  EXPECT_EQ(Run(), kBadSource);
  EXPECT_EQ(out_.str(), "");
  EXPECT_THAT(err_.str(), HasSubstr("-o labels: no source lists the nodes of Kubernetes"));
}

TEST_F(Topology, ThePictureIsWholeXmlWithItsTroubles) {
  folder_.Write("subnet.txt", Subnet(true));
  options_.output = "svg";
  EXPECT_EQ(Run(), kTrouble);
  const std::string svg = out_.str();
  EXPECT_THAT(svg, HasSubstr("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr("leaf&lt;0&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("leaf<0>")));
  EXPECT_THAT(svg, HasSubstr("rail 1: mlx5_1 at leaf&lt;1&gt; port 1, 400 Gbit/s, dead"));
  EXPECT_THAT(svg, HasSubstr(">Findings<"));
  int open = 0;
  for (size_t at = 0; (at = svg.find("<g>", at)) != std::string::npos; ++at) ++open;
  for (size_t at = 0; (at = svg.find("</g>", at)) != std::string::npos; ++at) --open;
  EXPECT_EQ(open, 0);
}

TEST(SvgLegendTest, LeavesRoomForTheOtherSigns) {
  const std::string legend = SvgLegend(16, 0, 0, 900);
  EXPECT_THAT(legend, HasSubstr(">rail 7<"));
  EXPECT_THAT(legend, Not(HasSubstr(">rail 8<")));
  EXPECT_THAT(legend, HasSubstr(">free<"));
  EXPECT_THAT(SvgLegend(2, 0, 0, 900), Not(HasSubstr(">rail 2<")));
}

TEST_F(Topology, LargeFabricsAreFolded) {
  std::string model =
      "apiVersion: railhead.io/v1alpha1\nkind: FabricModel\nmetadata: {name: big}\nspec:\n"
      "  topology: fat-tree\n  levels: [leaf]\n  rails: 1\n  domains:\n";
  for (int leaf = 0; leaf < 200; ++leaf) {
    absl::StrAppend(&model, "  - name: l", leaf, "\n    nodes: [{name: a", leaf,
                    ", gpus: 1, hcas: 1}, {name: b", leaf, ", gpus: 1, hcas: 1",
                    leaf == 7 ? ", deadRails: [0]" : "", "}]\n");
  }
  options_.files = {folder_.Write("model.yaml", model)};
  EXPECT_EQ(Run(), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("leaf l7  2 nodes"));
  EXPECT_THAT(out_.str(), HasSubstr("  b7    x  1 of 1 GPUs free\n  (1 node without trouble)\n"));
  EXPECT_THAT(out_.str(), HasSubstr("(199 leaves without trouble)"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("a8")));
  options_.output = "svg";
  EXPECT_EQ(Run(), kNoTrouble);
  EXPECT_THAT(out_.str(), HasSubstr("<title>l8: 2 nodes, 2 of 2 GPUs free"));
  EXPECT_THAT(out_.str(), HasSubstr(">b7<"));
  EXPECT_THAT(out_.str(), Not(HasSubstr(">b8<")));
}

TEST_F(Topology, DeadRailsOfAModelAreDrawnWhereTheyAre) {
  options_.files = {
      folder_.Write("model.yaml",
                    "apiVersion: railhead.io/v1alpha1\nkind: FabricModel\n"
                    "metadata: {name: f}\nspec:\n  topology: fat-tree\n  levels: [leaf]\n"
                    "  rails: 5\n  domains:\n  - name: l\n    nodes:\n"
                    "    - {name: n0, gpus: 300, hcas: 3, deadRails: [3]}\n")};
  EXPECT_EQ(Run(), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\n  n0  ||.x."));
  options_.output = "svg";
  EXPECT_EQ(Run(), kNoTrouble) << err_.str();
  EXPECT_THAT(out_.str(), Not(HasSubstr("width=\"-")));
}

TEST_F(Topology, BadInputIsNamed) {
  options_.name = "";
  EXPECT_EQ(Run(), kBadSource);
  EXPECT_THAT(err_.str(), HasSubstr("--name: must not be empty"));
  options_.name = "a\nb";
  EXPECT_EQ(Run(), kBadSource);
  EXPECT_THAT(err_.str(), HasSubstr("--name: \"a"));
  options_.name = "f";
  options_.files.push_back(folder_.Write("model.yaml", "kind: FabricModel\n"));
  EXPECT_EQ(Run(), kBadSource);
  EXPECT_THAT(err_.str(), HasSubstr("give it alone"));
  options_.files = {folder_.Write("model.yaml", "hello\n")};
  EXPECT_EQ(Run(), kBadSource);
  EXPECT_THAT(err_.str(), HasSubstr("model.yaml: the document: has an unknown format"));
  const std::string large = folder_.Write("large.json", "{");
  std::filesystem::resize_file(large, kMaxJsonText + 1);
  options_.files = {large};
  EXPECT_EQ(Run(), kBadSource);
  EXPECT_THAT(err_.str(),
              HasSubstr("large.json has more than the 268435456 bytes that are allowed"));
  EXPECT_THAT(err_.str(), HasSubstr("; split it: "));
  options_.files = {folder_.Path("none")};
  EXPECT_EQ(Run(), kBadSource);
  EXPECT_THAT(err_.str(), HasSubstr("cannot open"));
  EXPECT_EQ(out_.str(), "");
}

TEST(SvgText, CutsAndBreaks) {
  EXPECT_EQ(Shortened("a-very-long-name-0", 9), "a-ve…me-0");
  EXPECT_EQ(Shortened("short", 9), "short");
  EXPECT_THAT(Wrapped("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_EQ(XmlText("a<b>&\""), "a&lt;b&gt;&amp;&quot;");
  EXPECT_EQ(XmlText("\uffff\ufffd"), "\\uffff\ufffd");
}

}  // namespace
}  // namespace railhead::cli
