// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::StartsWith;

// A profile with every field.
Json Whole() {
  return Json::parse(R"({
    "apiVersion": "railhead.io/v1alpha1", "kind": "RailProfile",
    "metadata": {"name": "h100", "generation": 3, "uid": "u", "labels": {"a": "b"}},
    "status": {"conditions": []},
    "spec": {
      "fabric": "RoCE",
      "namespaceSelector": {"matchLabels": {"team": "ml"}},
      "podSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
      "priority": -5,
      "requireRDMA": "fail",
      "sharedMemory": {"size": "16Gi"},
      "inject": {"runtime": {"image": "a"},
                 "ncclPlugin": {"image": "b", "library": "/l/libnccl-net.so"}},
      "nccl": {"gdrLevel": "PXB", "gdrRead": true, "trafficClass": 106, "serviceLevel": 3,
               "qpsPerConnection": 4, "crossNic": 0, "socketInterface": "eth0,bond0.100",
               "addressFamily": "IPv6", "roceVersion": 2, "bufferSize": 8388608, "debug": "WARN",
               "collnet": false},
      "ucx": {"transports": "rc,sm,self", "trafficClass": 0, "serviceLevel": 1, "maxRails": 4,
              "logLevel": "warn"},
      "gloo": {"socketInterface": "eth0"},
      "railhead": {"transport": "verbs", "socketInterface": "eth1", "trafficClass": 255,
                   "serviceLevel": 7, "qpsPerRail": 2, "partitionKey": "0x8001", "timeoutSeconds": 30,
                   "algorithms": "all_reduce=ring", "log": "info"},
      "env": {"NCCL_ALGO": "Ring", "EMPTY": ""}}})");
}

TEST(ParseRailProfileTest, ReadsEveryField) {
  const absl::StatusOr<RailProfile> profile = ParseRailProfile(Whole());
  ASSERT_TRUE(profile.ok()) << profile.status();
  RailProfile expected;
  expected.name = "h100";
  expected.generation = 3;
  expected.fabric = Fabric::kRoce;
  expected.namespaces.labels = {{"team", "ml"}};
  expected.pods.expressions = {{"app", LabelSelector::Operator::kExists, {}}};
  expected.priority = -5;
  expected.require_rdma = RequireRdma::kFail;
  expected.shared_memory_size = "16Gi";
  expected.inject = {"a", "b", "/l/libnccl-net.so"};
  expected.settings = {{"nccl.gdrLevel", "PXB"},
                       {"nccl.gdrRead", "true"},
                       {"nccl.trafficClass", "106"},
                       {"nccl.serviceLevel", "3"},
                       {"nccl.qpsPerConnection", "4"},
                       {"nccl.crossNic", "0"},
                       {"nccl.socketInterface", "eth0,bond0.100"},
                       {"nccl.addressFamily", "IPv6"},
                       {"nccl.roceVersion", "2"},
                       {"nccl.bufferSize", "8388608"},
                       {"nccl.debug", "WARN"},
                       {"nccl.collnet", "false"},
                       {"ucx.transports", "rc,sm,self"},
                       {"ucx.trafficClass", "0"},
                       {"ucx.serviceLevel", "1"},
                       {"ucx.maxRails", "4"},
                       {"ucx.logLevel", "warn"},
                       {"gloo.socketInterface", "eth0"},
                       {"railhead.transport", "verbs"},
                       {"railhead.socketInterface", "eth1"},
                       {"railhead.trafficClass", "255"},
                       {"railhead.serviceLevel", "7"},
                       {"railhead.qpsPerRail", "2"},
                       {"railhead.partitionKey", "0x8001"},
                       {"railhead.timeoutSeconds", "30"},
                       {"railhead.algorithms", "all_reduce=ring"},
                       {"railhead.log", "info"}};
  expected.environment = {{"NCCL_ALGO", "Ring"}, {"EMPTY", ""}};
  EXPECT_EQ(*profile, expected);
}

TEST(ParseRailProfileTest, MostFieldsAreOptional) {
  const absl::StatusOr<RailProfile> profile = ParseRailProfile(Json::parse(R"({
    "apiVersion": "railhead.io/v1alpha1", "kind": "RailProfile", "metadata": {"name": "a"},
    "spec": {"fabric": "TCP", "namespaceSelector": {"matchLabels": {"a": "b"}}, "podSelector": null,
             "nccl": null, "ucx": {}, "env": {}}})"));
  ASSERT_TRUE(profile.ok()) << profile.status();
  RailProfile expected;
  expected.name = "a";
  expected.fabric = Fabric::kTcp;
  expected.namespaces.labels = {{"a", "b"}};
  EXPECT_EQ(*profile, expected);
}

TEST(ParseRailProfileTest, RefusalsBeginWithTheField) {
  const struct {
    const char* patch;  // a JSON merge patch that spoils the whole one
    const char* message;
  } kCases[] = {
      {R"({"apiVersion": "railhead.io/v1"})", "apiVersion: must be railhead.io/v1alpha1"},
      {R"({"kind": "Profile"})", "kind: must be RailProfile"},
      {R"({"specs": {}})", "specs: this field is not known; did you mean spec?"},
      {R"({"metadata": null})", "metadata.name: is missing"},
      {R"({"metadata": {"name": "A@1"}})", "metadata.name: must be"},
      {R"({"metadata": {"generation": "1"}})", "metadata.generation: must be a whole number"},
      {R"({"spec": null})", "spec: is missing"},
      {R"({"spec": []})", "spec: must be an object"},
      {R"({"spec": {"fabrics": 1}})", "spec.fabrics: this field is not known"},
      {R"({"spec": {"fabric": null}})", "spec.fabric: must be one of InfiniBand, RoCE"},
      {R"({"spec": {"fabric": "roce"}})", "spec.fabric: must be one of InfiniBand, RoCE"},
      {R"({"spec": {"priority": 1000001}})", "spec.priority: must be a whole number from -1000000"},
      {R"({"spec": {"priority": 1.5}})", "spec.priority: must be a whole number"},
      {R"({"spec": {"requireRDMA": "never"}})", "spec.requireRDMA: must be one of fail, warn"},
      {R"({"spec": {"namespaceSelector": null}})", "spec.namespaceSelector: is missing"},
      {R"({"spec": {"namespaceSelector": {"x": 1}}})",
       "spec.namespaceSelector.x: this field is not known"},
      {R"({"spec": {"podSelector": {"matchLabels": {"a": 1}}}})",
       "spec.podSelector.matchLabels[a]: must be a string"},
      {R"({"spec": {"nccl": []}})", "spec.nccl: must be an object"},
      {R"({"spec": {"nccl": {"gidIndex": 3}}})",
       "spec.nccl.gidIndex: this field is not known; the fields here are gdr"},
      {R"({"spec": {"nccl": {"gdrLevel": "NODE"}}})",
       "spec.nccl.gdrLevel: must be one of LOC, PIX"},
      {R"({"spec": {"nccl": {"gdrRead": 1}}})", "spec.nccl.gdrRead: must be true or false"},
      {R"({"spec": {"nccl": {"trafficClass": 256}}})",
       "spec.nccl.trafficClass: must be a whole number from 0 to 255"},
      {R"({"spec": {"nccl": {"trafficClass": "106"}}})", "spec.nccl.trafficClass: must be a whole"},
      {R"({"spec": {"nccl": {"trafficClass": -1}}})", "spec.nccl.trafficClass: must be a whole"},
      {R"({"spec": {"nccl": {"bufferSize": 18446744073709551615}}})", "spec.nccl.bufferSize: must"},
      {R"({"spec": {"nccl": {"socketInterface": "eth0,"}}})", "spec.nccl.socketInterface: must be"},
      {R"({"spec": {"nccl": {"socketInterface": "=eth0"}}})", "spec.nccl.socketInterface: must be"},
      {R"({"spec": {"nccl": {"socketInterface": "sixteen-letters-"}}})",
       "spec.nccl.socketInterface: must be"},
      {R"({"spec": {"ucx": {"transports": "RC"}}})", "spec.ucx.transports: must be names"},
      {R"({"spec": {"railhead": {"partitionKey": "0x8000"}}})", "spec.railhead.partitionKey: must"},
      {R"({"spec": {"railhead": {"partitionKey": "0x10001"}}})",
       "spec.railhead.partitionKey: must"},
      {R"({"spec": {"railhead": {"partitionKey": "8001"}}})", "spec.railhead.partitionKey: must"},
      {R"({"spec": {"railhead": {"algorithms": "a b"}}})", "spec.railhead.algorithms: must be"},
      {R"({"spec": {"nccl": {"serviceLevel": 8}}})", "spec.nccl.serviceLevel: must be at most 7"},
      {R"({"spec": {"fabric": "InfiniBand"}})",
       "spec.nccl.roceVersion: is valid only on fabric RoCE"},
      {R"({"spec": {"nccl": {"collnet": true}}})",
       "spec.nccl.collnet: can be true only on fabric InfiniBand, whose switches have SHARP; set "
       "it to false or remove it"},
      {R"({"spec": {"nccl": {"collnetMinNodes": 4}}})",
       "spec.nccl.collnetMinNodes: is valid only on fabric InfiniBand"},
      {R"({"spec": {"nccl": {"collnetPlugin": "sharp"}}})",
       "spec.nccl.collnetPlugin: is valid only on fabric InfiniBand"},
      {R"({"spec": {"nccl": {"sharpLogLevel": "warn"}}})",
       "spec.nccl.sharpLogLevel: is valid only on fabric InfiniBand"},
      {R"({"spec": {"fabric": "TCP"}})", "spec.requireRDMA: cannot be fail on fabric TCP"},
      {R"({"spec": {"fabric": "EFA"}})", "spec.requireRDMA: cannot be fail on fabric EFA without"},
      {R"({"spec": {"sharedMemory": {}}})", ""},
      {R"({"spec": {"sharedMemory": {"size": null}}})", "spec.sharedMemory.size: is missing"},
      {R"({"spec": {"sharedMemory": {"size": "1.5Gi"}}})",
       "spec.sharedMemory.size: must be a size"},
      {R"({"spec": {"sharedMemory": {"size": "0"}}})", "spec.sharedMemory.size: must be a size"},
      {R"({"spec": {"sharedMemory": {"size": "Gi"}}})", "spec.sharedMemory.size: must be a size"},
      {R"({"spec": {"sharedMemory": {"size": 5}}})", "spec.sharedMemory.size: must be a string"},
      {R"({"spec": {"sharedMemory": {"medium": "x"}}})",
       "spec.sharedMemory.medium: this field is not known"},
      {R"({"spec": {"inject": {"runtime": null, "ncclPlugin": null}}})",
       "spec.inject: must contain"},
      {R"({"spec": {"inject": {"runtime": {"image": "a b"}}}})", "spec.inject.runtime.image: must"},
      {R"({"spec": {"fabric": "EFA", "nccl": {"roceVersion": null}, "env": {"NCCL_NET": "x"},
                    "inject": {"ncclPlugin": {"library": null}}}})",
       "spec.inject.ncclPlugin.library: is missing on fabric EFA"},
      {R"({"spec": {"env": {"NCCL_NET_PLUGIN": "x"}}})",
       "spec.env[NCCL_NET_PLUGIN]: cannot be set together with spec.inject.ncclPlugin"},
      {R"({"spec": {"env": []}})", "spec.env: must be an object"},
      {R"({"spec": {"env": {"A-B": "1"}}})", "spec.env[A-B]: is not the name"},
      {R"({"spec": {"env": {"RANK": "1"}}})", "spec.env[RANK]: cannot be set here: Railhead"},
      {R"({"spec": {"env": {"NCCL_IB_HCA": "mlx5_0"}}})", "spec.env[NCCL_IB_HCA]: cannot be set"},
      {R"({"spec": {"env": {"NCCL_IB_GID_INDEX": "3"}}})",
       "spec.env[NCCL_IB_GID_INDEX]: cannot be"},
      {R"({"spec": {"env": {"NCCL_IB_TC": "106"}}})",
       "spec.env[NCCL_IB_TC]: cannot be set here: set spec.nccl.trafficClass"},
      {R"({"spec": {"env": {"RAILHEAD_FALLBACK": "warn"}}})",
       "spec.env[RAILHEAD_FALLBACK]: cannot be set here: set spec.requireRDMA"},
      {R"({"spec": {"env": {"A": 1}}})", "spec.env[A]: must be a string"},
  };
  for (const auto& wrong : kCases) {
    Json object = Whole();
    object.merge_patch(Json::parse(wrong.patch));
    const absl::Status status = ParseRailProfile(object).status();
    if (*wrong.message == '\0') {  // merging nothing spoils nothing
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong.patch;
    EXPECT_THAT(std::string(status.message()), StartsWith(wrong.message));
  }
}

// SHARP, without a plugin that is injected.
Json Sharp() {
  Json object = Whole();
  object.merge_patch(Json::parse(R"({"spec": {"fabric": "InfiniBand", "inject": null,
    "nccl": {"roceVersion": null, "collnet": true, "collnetMinNodes": 4,
             "collnetPlugin": "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so",
             "sharpLogLevel": "info"}}})"));
  return object;
}

TEST(ParseRailProfileTest, SharpNeedsInfiniBand) {
  const absl::StatusOr<RailProfile> profile = ParseRailProfile(Sharp());
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->settings.at("nccl.collnet"), "true");
  EXPECT_EQ(profile->settings.at("nccl.collnetMinNodes"), "4");
  EXPECT_EQ(profile->settings.at("nccl.collnetPlugin"),
            "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so");
  EXPECT_EQ(profile->settings.at("nccl.sharpLogLevel"), "info");
  Json object = Sharp();
  object["spec"]["requireRDMA"] = "warn";
  for (const char* fabric : {"RoCE", "iWARP", "EFA", "TCP"}) {
    object["spec"]["fabric"] = fabric;
    EXPECT_THAT(std::string(ParseRailProfile(object).status().message()),
                StartsWith("spec.nccl.collnet: can be true only on fabric InfiniBand"))
        << fabric;
  }
}

TEST(ParseRailProfileTest, RefusalsOfSharpBeginWithTheField) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"spec": {"nccl": {"collnet": 1}}})", "spec.nccl.collnet: must be true or false"},
      {R"({"spec": {"nccl": {"collnetMinNodes": 1}}})",
       "spec.nccl.collnetMinNodes: must be a whole number from 2 to 65536"},
      {R"({"spec": {"nccl": {"collnetPlugin": ""}}})", "spec.nccl.collnetPlugin: must be the name"},
      {R"({"spec": {"nccl": {"collnetPlugin": "a b"}}})",
       "spec.nccl.collnetPlugin: must be the name"},
      {R"({"spec": {"nccl": {"collnetPlugin": "a,"}}})",
       "spec.nccl.collnetPlugin: must be the name"},
      {R"({"spec": {"nccl": {"sharpLogLevel": 3}}})", "spec.nccl.sharpLogLevel: must be a string"},
      {R"({"spec": {"nccl": {"sharpLogLevel": "INFO"}}})",
       "spec.nccl.sharpLogLevel: must be one of fatal, error, warn, info"},
      {R"({"spec": {"inject": {"ncclPlugin": {"image": "a"}}}})",
       "spec.nccl.collnetPlugin: cannot be set together with spec.inject.ncclPlugin"},
      {R"({"spec": {"env": {"NCCL_NET_PLUGIN": "x"}}})",
       "spec.env[NCCL_NET_PLUGIN]: cannot be set together with spec.nccl.collnetPlugin"},
      {R"({"spec": {"env": {"SHARP_COLL_LOG_LEVEL": "3"}}})",
       "spec.env[SHARP_COLL_LOG_LEVEL]: cannot be set here: set spec.nccl.sharpLogLevel"},
      {R"({"spec": {"env": {"NCCL_COLLNET_NODE_THRESHOLD": "3"}}})",
       "spec.env[NCCL_COLLNET_NODE_THRESHOLD]: cannot be set here: set "
       "spec.nccl.collnetMinNodes"},
  };
  for (const auto& [patch, message] : kCases) {
    Json object = Sharp();
    object.merge_patch(Json::parse(patch));
    EXPECT_THAT(std::string(ParseRailProfile(object).status().message()), StartsWith(message));
  }
  // Without the field the variable is free, as on every fabric.
  Json object = Sharp();
  object.merge_patch(Json::parse(R"({"spec": {"nccl": {"collnetPlugin": null},
                                              "env": {"NCCL_NET_PLUGIN": "x"}}})"));
  EXPECT_TRUE(ParseRailProfile(object).ok());
}

TEST(ParseRailProfileTest, BoundsTheEnvironment) {
  Json object = Whole();
  object["spec"]["env"] = Json::object();
  for (int i = 0; i < 64; ++i) object["spec"]["env"]["A" + std::to_string(i)] = "1";
  EXPECT_TRUE(ParseRailProfile(object).ok());
  object["spec"]["env"]["A64"] = "1";
  EXPECT_THAT(std::string(ParseRailProfile(object).status().message()), StartsWith("spec.env: "));
  object["spec"]["env"] = {{"A", std::string(4096, 'x')}};
  EXPECT_TRUE(ParseRailProfile(object).ok());
  object["spec"]["env"] = {{"A", std::string(4097, 'x')}};
  EXPECT_THAT(std::string(ParseRailProfile(object).status().message()), StartsWith("spec.env[A]"));
}

TEST(ParseRailProfileTest, RefusesWhatWouldSelectKubeSystem) {
  const std::pair<const char*, bool> kSelectors[] = {
      {"{}", false},
      {R"({"matchExpressions": []})", false},
      {R"({"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}})", false},
      {R"({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]})",
       false},
      {R"({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In",
           "values": ["a", "kube-system"]}]})",
       false},
      {R"({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn",
           "values": ["a"]}]})",
       false},
      {R"({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]})", false},
      {R"({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]})", false},
      {R"({"matchLabels": {"kubernetes.io/metadata.name": "train"}})", true},
      {R"({"matchLabels": {"team": "ml"}})", true},
      {R"({"matchExpressions": [{"key": "team", "operator": "Exists"}]})", true},
      {R"({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn",
           "values": ["kube-system", "a"]}]})",
       true},
      {R"({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"},
           {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a"]}]})",
       true},
  };
  for (const auto& [selector, accepted] : kSelectors) {
    Json object = Whole();
    object["spec"]["namespaceSelector"] = Json::parse(selector);
    const absl::Status status = ParseRailProfile(object).status();
    EXPECT_EQ(status.ok(), accepted) << selector << status;
    if (!accepted) {
      EXPECT_THAT(std::string(status.message()),
                  StartsWith("spec.namespaceSelector: would match kube-system"));
    }
  }
}

TEST(ParseRailProfileTest, EfaMayFailWithAPluginOfAName) {
  Json object = Whole();
  object["spec"]["fabric"] = "EFA";
  object["spec"]["nccl"].erase("roceVersion");
  object["spec"]["env"]["NCCL_NET"] = "AWS Libfabric";
  const absl::StatusOr<RailProfile> profile = ParseRailProfile(object);
  EXPECT_TRUE(profile.ok()) << profile.status();
}

}  // namespace
}  // namespace railhead::op
