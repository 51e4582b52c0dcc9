// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/admission/init_container.h"
#include "operator/objects/rdma_containers.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Injection Both() {
  return {"r.example/railhead/runtime:1", "r.example/ofi:2", "/opt/ofi/lib/libnccl-net-ofi.so"};
}

// A pod, what is added to it, and what is said of it.
struct Added {
  Json pod;
  std::vector<std::string> warnings;
};

Added AddTo(const Json& pod, const Injection& injection = Both()) {
  Draft draft(pod);
  const auto copies =
      AddLibraries(injection, *FindRdmaContainers(pod["spec"], RdmaResources()), draft);
  EXPECT_TRUE(copies.ok()) << copies.status();
  EXPECT_TRUE(AddInitContainers(*copies, draft).ok());
  EXPECT_EQ(pod.patch(draft.patch()), draft.object());
  return {draft.object(), draft.warnings()};
}

Json ServedPod() {
  return Json::parse(R"({"spec": {
    "initContainers": [{"name": "first", "image": "x"},
                       {"name": "check", "image": "x", "resources": {"limits": {"rdma/hca": "1"}}}],
    "containers": [{"name": "logs", "image": "x"},
                   {"name": "main", "image": "x", "resources": {"limits": {"rdma/hca": "1"}}}],
    "volumes": [{"name": "data", "emptyDir": {}}]}})");
}

std::vector<std::string> Names(const Json& list) {
  std::vector<std::string> names;
  for (const Json& item : list) names.push_back(item["name"]);
  return names;
}

TEST(AddLibrariesTest, TheyAreThereBeforeAnyContainerRuns) {
  const Json spec = AddTo(ServedPod()).pod["spec"];
  EXPECT_THAT(Names(spec["initContainers"]),
              ElementsAre("railhead-copy-runtime", "railhead-copy-nccl-net", "first", "check"));
  const Json mount = {
      {"name", "railhead-libraries"}, {"mountPath", "/opt/railhead"}, {"readOnly", true}};
  EXPECT_EQ(spec["initContainers"][3]["volumeMounts"], Json::array({mount}));
  EXPECT_EQ(spec["containers"][1]["volumeMounts"], Json::array({mount}));
  EXPECT_FALSE(spec["containers"][0].contains("volumeMounts"));
  EXPECT_THAT(Names(spec["volumes"]), ElementsAre("data", "railhead-libraries"));
  EXPECT_EQ(spec["initContainers"][0]["image"], "r.example/railhead/runtime:1");
  EXPECT_EQ(spec["initContainers"][0]["command"],
            Json::array({"/railhead-copy", "/opt/railhead/runtime"}));
  EXPECT_EQ(spec["initContainers"][1]["command"].back(), "/opt/railhead/nccl-net");
  EXPECT_EQ(spec["initContainers"][1]["command"][4], "/opt/ofi/lib");
}

TEST(AddLibrariesTest, RailheadsOwnPluginComesFromItsImage) {
  const Json spec = AddTo(ServedPod(), {"", "r.example/railhead/inject:1", ""}).pod["spec"];
  EXPECT_THAT(Names(spec["initContainers"]),
              ElementsAre("railhead-copy-nccl-net", "first", "check"));
  EXPECT_EQ(spec["initContainers"][0]["image"], "r.example/railhead/inject:1");
  EXPECT_EQ(spec["initContainers"][0]["command"],
            Json::array({"/railhead-copy", "/opt/railhead/nccl-net", "nccl-net"}));
}

TEST(AddLibrariesTest, OnceIsEnough) {
  for (const Injection& injection :
       {Both(), Injection{"a", "", "", {"torch", "mpi"}}, Injection{"", "a", ""}}) {
    const Json once = AddTo(ServedPod(), injection).pod;
    EXPECT_EQ(AddTo(once, injection).pod, once);
  }
}

// A container more of another kind would take from a pod the CPUs that it has for itself.
TEST(AddLibrariesTest, APodStaysGuaranteed) {
  Json pod = ServedPod();
  pod["spec"]["containers"][0]["resources"]["limits"] = {{"cpu", "1"}, {"memory", "1Gi"}};
  for (const Json& container : AddTo(pod).pod["spec"]["initContainers"]) {
    if (!container["name"].get<std::string>().starts_with("railhead-")) continue;
    EXPECT_EQ(container["resources"]["limits"], container["resources"]["requests"]);
    EXPECT_TRUE(container["resources"]["limits"].contains("cpu"));
    EXPECT_TRUE(container["resources"]["limits"].contains("memory"));
  }
}

// Amounts would take room on a node that the pod does not ask for.
TEST(AddLibrariesTest, APodWithoutAmountsGetsNone) {
  for (const Json& container : AddTo(ServedPod()).pod["spec"]["initContainers"]) {
    if (!container["name"].get<std::string>().starts_with("railhead-")) continue;
    EXPECT_FALSE(container.contains("resources")) << container;
  }
  Json pod = ServedPod();
  pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi";
  pod["spec"]["resources"]["limits"]["cpu"] = "50m";  // of all containers together
  EXPECT_FALSE(AddTo(pod).pod["spec"]["initContainers"][0].contains("resources"));
}

TEST(AddLibrariesTest, WhoCopiesMayDoNoMoreThanWhomItIsFor) {
  Json pod = ServedPod();
  pod["spec"].erase("initContainers");
  pod["spec"]["containers"][1]["securityContext"] = {{"privileged", true},
                                                     {"runAsUser", 1000},
                                                     {"runAsNonRoot", true},
                                                     {"capabilities", {{"add", {"IPC_LOCK"}}}}};
  const Json spec = AddTo(pod, {"a", "", ""}).pod["spec"];
  EXPECT_EQ(spec["initContainers"][0]["securityContext"],
            Json::parse(R"({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                            "seccompProfile": {"type": "RuntimeDefault"},
                            "runAsUser": 1000, "runAsNonRoot": true})"));
}

TEST(AddLibrariesTest, WhatThePodHasItselfStays) {
  Json pod = ServedPod();
  pod["spec"]["volumes"][0] = {{"name", "railhead-libraries"}, {"hostPath", {{"path", "/x"}}}};
  Added added = AddTo(pod);
  EXPECT_EQ(added.pod, pod);
  EXPECT_THAT(added.warnings, ElementsAre(HasSubstr("already has a volume railhead-libraries")));

  pod = ServedPod();
  pod["spec"]["containers"][1]["volumeMounts"] = {
      {{"name", "data"}, {"mountPath", "/opt/railhead/"}}};
  added = AddTo(pod);
  EXPECT_EQ(added.pod["spec"]["containers"], pod["spec"]["containers"]);
  EXPECT_THAT(added.warnings, ElementsAre(HasSubstr("container main gets no libraries")));
  EXPECT_THAT(AddTo(added.pod).warnings, added.warnings);

  pod = ServedPod();
  pod["spec"]["containers"][1]["env"] = {{{"name", "LD_LIBRARY_PATH"}, {"value", "/mine"}}};
  EXPECT_THAT(AddTo(pod).warnings,
              ElementsAre(HasSubstr("add /opt/railhead/runtime:/opt/railhead/nccl-net to it")));
  // Ours, from an earlier call.
  pod["spec"]["containers"][1]["env"][0]["value"] =
      SearchPaths(Both())["LD_LIBRARY_PATH"] + ":/mine";
  EXPECT_THAT(AddTo(pod).warnings, IsEmpty());
}

TEST(AddLibrariesTest, NothingIsAddedUnlessAskedFor) {
  EXPECT_EQ(AddTo(ServedPod(), {}).pod, ServedPod());
  Json pod = ServedPod();
  pod["spec"] = {{"containers", {{{"name", "web"}, {"image", "x"}}}}};
  EXPECT_EQ(AddTo(pod).pod, pod);
}

}  // namespace
}  // namespace railhead::op
