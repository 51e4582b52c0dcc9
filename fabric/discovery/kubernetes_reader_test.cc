// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/kubernetes_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/place_labels.h"
#include "fabric/discovery/source.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kCluster[] = R"({"apiVersion": "v1", "kind": "List", "items": [
 {"kind": "Node", "metadata": {"name": "n0", "managedFields": [{}],
   "labels": {"topology.k8s.aws/network-node-layer-1": "nn-a",
              "topology.k8s.aws/network-node-layer-2": "nn-b",
              "topology.kubernetes.io/zone": "us-1a"},
   "annotations": {"railhead.io/node-facts": "{\"version\":1,\"rails\":[{\"rail\":1,\"device\":\"mlx5_1\",\"port\":1,\"rateGbps\":400,\"netdev\":\"\",\"slaves\":[\"e0\",\"e1\"],\"usable\":false,\"reason\":\"port 1 is DOWN\"},{\"rail\":0,\"device\":\"mlx5_0\",\"rateGbps\":400,\"netdev\":\"ib0\",\"usable\":true,\"reason\":\"\"}],\"gpus\":[{},{}]}"}},
  "spec": {"unschedulable": true},
  "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": "8", "rdma/hca": "2"},
             "conditions": [{"type": "Ready", "status": "True"}]}},
 {"kind": "Node", "metadata": {"name": "n1", "uid": "0-1"},
  "status": {"allocatable": {"rdma/hca": "1k"},
             "conditions": [{"type": "Ready", "status": "Unknown"}]}},
 {"kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Running"},
  "spec": {"nodeName": "n0",
    "initContainers": [{"resources": {"requests": {"nvidia.com/gpu": "4"}}}],
    "containers": [{"resources": {"requests": {"nvidia.com/gpu": "2", "rdma/hca": "1"}}},
                   {"resources": {}}, {"resources": {"requests": {"rdma/hca": "1"}}}]}},
 {"kind": "Pod", "status": {"phase": "Succeeded"}, "spec": {"nodeName": "n0",
    "containers": [{"resources": {"requests": {"nvidia.com/gpu": "2"}}}]}},
 {"kind": "Pod", "spec": {"containers": []}}, {"kind": "Service"}]})";

TEST(Kubernetes, ReadsHowRailsAreNamed) {
  const auto read = [](const char* spec) {
    return ReadSource(absl::StrCat(R"({"apiVersion": "v1", "kind": "List", "items": [
 {"apiVersion": "configuration.net.nvidia.com/v1alpha1", "kind": "NicInterfaceNameTemplate",
  "metadata": {"name": "t", "namespace": "o"}, "spec": )",
                                   spec, "}]}"),
                      "k.json");
  };
  auto seen = read(R"({"pfsPerNic": 2, "rdmaDevicePrefix": "r%rail_id%",
                       "railPciAddresses": [["a"], ["b", "c", "d"]]})");
  ASSERT_TRUE(seen.ok()) << seen.status();
  Observations want;
  want.rail_names = {{"t", "r%rail_id%", 6, "k.json:3"}};
  EXPECT_EQ(*seen, want);
  seen = read(R"({"rdmaDevicePrefix": "r%rail_id%"})");
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->rail_names[0].devices, 1);
  EXPECT_EQ(*read(R"({"rdmaDevicePrefix": "", "pfsPerNic": 0})"), Observations());
  EXPECT_THAT(read(R"({"rdmaDevicePrefix": "x", "pfsPerNic": 0})").status().message(),
              HasSubstr("k.json:3: items[0].spec.pfsPerNic"));
  EXPECT_THAT(read(R"({"rdmaDevicePrefix": 5})").status().message(),
              HasSubstr("items[0].spec.rdmaDevicePrefix"));
}

TEST(Kubernetes, ReadsNodesAndWhatPodsHold) {
  const auto seen = ReadSource(kCluster, "k.json");
  ASSERT_TRUE(seen.ok()) << seen.status();
  Observations want;
  want.nodes.resize(2);
  want.nodes[0].name = "n0";
  want.nodes[0].gpus = 8;
  want.nodes[0].offers_gpus = true;
  want.nodes[0].hcas = 2;
  want.nodes[0].unschedulable = "cordoned";
  want.nodes[0].rails = {{0, "mlx5_0", "ib0", 400, true, "", 0, {}},
                         {1, "mlx5_1", "", 400, false, "port 1 is DOWN", 1, {"e0", "e1"}}};
  want.nodes[0].places = {{"AWS", {{"layer-1", "nn-a"}, {"layer-2", "nn-b"}}},
                          {"Kubernetes", {{"zone", "us-1a"}}}};
  want.nodes[0].where = "k.json:2";
  want.nodes[1].name = "n1";
  want.nodes[1].uid = "0-1";
  want.nodes[1].hcas = 1000;  // no machine has so many: they are shares
  want.nodes[1].unschedulable = "not ready";
  want.nodes[1].where = "k.json:10";
  want.uses = {{"n0", 4, 2}};
  EXPECT_EQ(*seen, want);
}

TEST(Kubernetes, SharesAreReadAsKubernetesWritesThem) {
  for (const auto& [text, shares] :
       std::vector<std::pair<std::string, int>>{{"63", 63},
                                                {"2k", 2000},
                                                {"1M", 1'000'000},
                                                {"7M", 1'000'000},
                                                {"9G", 1'000'000},
                                                {"9000000000000", 1'000'000},
                                                {"4Ki", 4096},
                                                {"0", 0}}) {
    const auto seen =
        ReadSource(absl::StrReplaceAll(kCluster, {{"\"1k\"", "\"" + text + "\""}}), "k");
    ASSERT_TRUE(seen.ok()) << seen.status();
    EXPECT_EQ(seen->nodes[1].hcas, shares) << text;
  }
}

TEST(Kubernetes, HcasAreAllOfRdmaUnlessSaidOtherwise) {
  constexpr char kNode[] = R"({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n0"},
    "status": {"allocatable": {"rdma/rail-0": "1", "rdma/rail-1": "1", "example.com/nic": "4"}}})";
  EXPECT_EQ(ReadSource(kNode, "k")->nodes[0].hcas, 2);
  const auto is_nic = [](absl::string_view name) { return name == "example.com/nic"; };
  EXPECT_EQ(ReadSource(kNode, "k", is_nic)->nodes[0].hcas, 4);
}

TEST(Kubernetes, SidecarsHoldTheirHcasBesideTheOthers) {
  constexpr char kPod[] = R"({"kind": "Pod", "apiVersion": "v1", "spec": {"nodeName": "n0",
    "initContainers": [INIT],
    "containers": [{"resources": {"requests": {"rdma/hca": "4", "nvidia.com/gpu": "2"}}}]}})";
  constexpr char kProxy[] =
      R"({"restartPolicy": "Always", "resources": {"requests": {"rdma/hca": "2"}}})";
  constexpr char kCheck[] = R"({"resources": {"requests": {"rdma/hca": "5"}}})";
  for (const auto& [init, hcas] :
       std::vector<std::pair<std::string, int>>{{kProxy, 6},
                                                {kCheck, 5},
                                                {absl::StrCat(kCheck, ",", kProxy), 6},
                                                {absl::StrCat(kProxy, ",", kCheck), 7},
                                                {absl::StrCat(kProxy, ",", kProxy), 8}}) {
    const auto seen = ReadSource(absl::StrReplaceAll(kPod, {{"INIT", init}}), "k");
    ASSERT_TRUE(seen.ok()) << seen.status();
    ASSERT_EQ(seen->uses.size(), 1) << init;
    EXPECT_EQ(seen->uses[0].hcas, hcas) << init;
    EXPECT_EQ(seen->uses[0].gpus, 2) << init;
  }
}

TEST(Kubernetes, EachSchemesLevelsAreOutermostFirst) {
  EXPECT_THAT(
      PlacesOf({{"fabric.topograph.run/tier-0", "l"}, {"fabric.topograph.run/tier-1", "s"}}),
      ElementsAre(SeenPlace{"Topograph", {{"spine", "s"}, {"leaf", "l"}}}));
  const auto places = PlacesOf({{"network.topology.nvidia.com/leaf", "l"},
                                {"network.topology.nvidia.com/core", "c"},
                                {"cloud.google.com/gce-topology-block", "b"},
                                {"cloud.google.com/gce-topology-host", "h"},
                                {"cloud.google.com/gce-topology-subblock", "sb"},
                                {"topology.railhead.io/leaf", "lf0"},
                                {"topology.kubernetes.io/zone", ""}});
  EXPECT_THAT(places, ElementsAre(SeenPlace{"Railhead", {{"leaf", "lf0"}}},
                                  SeenPlace{"NVIDIA", {{"core", "c"}, {"leaf", "l"}}},
                                  SeenPlace{"GKE", {{"block", "b"}, {"subblock", "sb"}}}));
}

TEST(Kubernetes, FactsThatCannotBeReadAreTheirNodesTrouble) {
  const auto fault = [](const std::string& from, const std::string& to) {
    const auto seen = ReadSource(absl::StrReplaceAll(kCluster, {{from, to}}), "k.json");
    EXPECT_TRUE(seen.ok()) << seen.status();
    if (!seen.ok()) return std::string();
    EXPECT_EQ(seen->nodes.size(), 2);
    EXPECT_FALSE(seen->nodes[0].rails.has_value());
    return seen->nodes[0].facts_fault;
  };
  EXPECT_THAT(fault(R"(\"rail\":1)", R"(\"rail\":0)"),
              HasSubstr("n0:1: rails[1].rail: rail 0 is listed twice"));
  EXPECT_THAT(fault(R"(\"version\":1)", R"(\"version\":2)"), HasSubstr("version: must be a whole"));
  EXPECT_THAT(fault(R"(\"rateGbps\":400)", R"(\"rateGbps\":-1)"), HasSubstr("rails[0].rateGbps"));
  EXPECT_THAT(fault(R"(\"gpus\":[)", absl::StrCat(R"(\"gpus\":[)", std::string(300'000, ' '))),
              HasSubstr("more than 262144"));
}

TEST(Kubernetes, WhatIsWrongIsNamed) {
  const auto error = [](const std::string& from, const std::string& to) {
    const auto seen = ReadSource(absl::StrReplaceAll(kCluster, {{from, to}}), "k.json");
    EXPECT_FALSE(seen.ok()) << from;
    return std::string(seen.status().message());
  };
  EXPECT_THAT(error(R"("name": "n1")", R"("nome": "n1")"),
              HasSubstr("k.json:10: items[1].metadata.name: is missing"));
  EXPECT_THAT(
      error(R"("rdma/hca": "1k")", R"("rdma/hca": "1.5")"),
      HasSubstr("k.json:11: items[1].status.allocatable[rdma/hca]: \"1.5\" is not an integer"));
  EXPECT_THAT(error(R"("nodeName": "n0")", R"("nodeName": 7)"),
              HasSubstr("items[2].spec.nodeName: must be a text, not a number"));
}

}  // namespace
}  // namespace railhead::fabric
