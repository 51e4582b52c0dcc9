// SPDX-License-Identifier: Apache-2.0
#include "operator/injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const Injection kBoth = {"r.example/railhead/runtime:1", "r.example/ofi:2",
                         "/opt/ofi/lib/libnccl-net-ofi.so"};

TEST(ReadInjectionTest, ReadsWhatIsAskedFor) {
  const auto read = [](const char* text) {
    return ReadInjection(Json::parse(text), "spec.inject");
  };
  EXPECT_EQ(*read(R"({"runtime": {"image": "a"}})"), (Injection{"a", "", ""}));
  EXPECT_EQ(
      *read(R"({"runtime": {"image": "r.example:5000/a/b@sha256:0123"}, "ncclPlugin": null})"),
      (Injection{"r.example:5000/a/b@sha256:0123", "", ""}));
  EXPECT_EQ(*read(R"({"ncclPlugin": {"image": "b", "library": "/l/libnccl-net.so"}})"),
            (Injection{"", "b", "/l/libnccl-net.so"}));
}

TEST(ReadInjectionTest, RefusesTheRestByItsPath) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"[]", "spec.inject: "},
      {"{}", "spec.inject: must say runtime or ncclPlugin"},
      {R"({"runtime": null})", "spec.inject: must say runtime or ncclPlugin"},
      {R"({"plugin": {}})", "spec.inject.plugin: "},
      {R"({"runtime": "a"})", "spec.inject.runtime: "},
      {R"({"runtime": {}})", "spec.inject.runtime.image: is missing"},
      {R"({"runtime": {"image": "a", "tag": "b"}})", "spec.inject.runtime.tag: "},
      {R"({"runtime": {"image": ""}})", "spec.inject.runtime.image: must be an image"},
      {R"({"runtime": {"image": "a b"}})", "spec.inject.runtime.image: must be an image"},
      {R"({"runtime": {"image": "-a"}})", "spec.inject.runtime.image: must be an image"},
      {R"({"runtime": {"image": "a:"}})", "spec.inject.runtime.image: must be an image"},
      {R"({"runtime": {"image": 1}})", "spec.inject.runtime.image: "},
      {R"({"ncclPlugin": {"image": "a"}})", "spec.inject.ncclPlugin.library: is missing"},
      {R"({"ncclPlugin": {"library": "/a/libnccl-net.so"}})", "spec.inject.ncclPlugin.image: "},
  };
  for (const auto& test : kCases) {
    const absl::Status status = ReadInjection(Json::parse(test.text), "spec.inject").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << test.text;
    EXPECT_THAT(std::string(status.message()), StartsWith(test.message)) << test.text;
  }
  for (const char* library :
       {"libnccl-net.so", "a/libnccl-net.so", "/libnccl-net.so", "/a/libnccl-net-.so",
        "/a/libnccl-net.so.1", "/a/libnccl-netx.so", "/a/other.so", "/a b/libnccl-net.so", ""}) {
    const Json value = {{"ncclPlugin", {{"image", "a"}, {"library", library}}}};
    EXPECT_THAT(std::string(ReadInjection(value, "spec.inject").status().message()),
                StartsWith("spec.inject.ncclPlugin.library: must be"))
        << library;
  }
}

TEST(InjectionTest, LibrariesAreFoundWhereTheyAre) {
  EXPECT_EQ(LibraryPath(kBoth), "/opt/railhead/runtime:/opt/railhead/nccl-net");
  EXPECT_EQ(LibraryPath({"a", "", ""}), "/opt/railhead/runtime");
  EXPECT_EQ(PluginName(kBoth), "ofi");
  EXPECT_EQ(PluginName({"", "a", "/l/libnccl-net.so"}), "");  // NCCL's own choice
  EXPECT_EQ(PluginName({"a", "", ""}), "");
}

// A pod, what is added to it, and what is said of it.
struct Added {
  Json pod;
  std::vector<std::string> warnings;
};

Added Add(const Json& pod, const Injection& injection = kBoth) {
  Added added;
  const absl::StatusOr<std::vector<RdmaContainer>> containers = FindRdmaContainers(pod["spec"]);
  EXPECT_TRUE(containers.ok());
  Json patch = Json::array();
  const absl::Status status =
      AddLibraries(pod["spec"], *containers, injection, patch, added.warnings);
  EXPECT_TRUE(status.ok()) << status;
  added.pod = pod.patch(patch);
  return added;
}

Json Pod() {
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
  const Json spec = Add(Pod()).pod["spec"];
  EXPECT_THAT(Names(spec["initContainers"]),
              ElementsAre("railhead-copy-runtime", "railhead-copy-nccl-net", "first", "check"));
  const Json mount = {
      {"name", "railhead-libraries"}, {"mountPath", "/opt/railhead"}, {"readOnly", true}};
  EXPECT_EQ(spec["initContainers"][3]["volumeMounts"], Json::array({mount}));
  EXPECT_EQ(spec["containers"][1]["volumeMounts"], Json::array({mount}));
  EXPECT_FALSE(spec["containers"][0].contains("volumeMounts"));
  EXPECT_THAT(Names(spec["volumes"]), ElementsAre("data", "railhead-libraries"));
  EXPECT_EQ(spec["initContainers"][0]["image"], "r.example/railhead/runtime:1");
  EXPECT_EQ(spec["initContainers"][1]["command"].back(), "/opt/railhead/nccl-net");
  EXPECT_EQ(spec["initContainers"][1]["command"][4], "/opt/ofi/lib");
}

TEST(AddLibrariesTest, OnceIsEnough) {
  for (const Injection& injection : {kBoth, Injection{"a", "", ""}}) {
    const Json once = Add(Pod(), injection).pod;
    EXPECT_EQ(Add(once, injection).pod, once);
  }
}

// A container more of another kind would take from a pod the CPUs that it has for itself.
TEST(AddLibrariesTest, APodStaysGuaranteed) {
  for (const Json& container : Add(Pod()).pod["spec"]["initContainers"]) {
    if (!container["name"].get<std::string>().starts_with("railhead-")) continue;
    EXPECT_EQ(container["resources"]["limits"], container["resources"]["requests"]);
    EXPECT_TRUE(container["resources"]["limits"].contains("cpu"));
    EXPECT_TRUE(container["resources"]["limits"].contains("memory"));
  }
}

TEST(AddLibrariesTest, WhoCopiesMayDoNoMoreThanWhomItIsFor) {
  Json pod = Pod();
  pod["spec"].erase("initContainers");
  pod["spec"]["containers"][1]["securityContext"] = {{"privileged", true},
                                                     {"runAsUser", 1000},
                                                     {"runAsNonRoot", true},
                                                     {"capabilities", {{"add", {"IPC_LOCK"}}}}};
  const Json spec = Add(pod, {"a", "", ""}).pod["spec"];
  EXPECT_EQ(spec["initContainers"][0]["securityContext"],
            Json::parse(R"({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                            "seccompProfile": {"type": "RuntimeDefault"},
                            "runAsUser": 1000, "runAsNonRoot": true})"));
}

TEST(AddLibrariesTest, WhatThePodHasItselfStays) {
  Json pod = Pod();
  pod["spec"]["volumes"][0] = {{"name", "railhead-libraries"}, {"hostPath", {{"path", "/x"}}}};
  Added added = Add(pod);
  EXPECT_EQ(added.pod, pod);
  EXPECT_THAT(added.warnings, ElementsAre(HasSubstr("a volume railhead-libraries of its own")));

  pod = Pod();
  pod["spec"]["containers"][1]["volumeMounts"] = {
      {{"name", "data"}, {"mountPath", "/opt/railhead/"}}};
  added = Add(pod);
  EXPECT_EQ(added.pod["spec"]["containers"], pod["spec"]["containers"]);
  EXPECT_THAT(added.warnings, ElementsAre(HasSubstr("container main gets no libraries")));
  EXPECT_THAT(Add(added.pod).warnings, added.warnings);

  pod = Pod();
  pod["spec"]["containers"][1]["env"] = {{{"name", "LD_LIBRARY_PATH"}, {"value", "/mine"}}};
  EXPECT_THAT(Add(pod).warnings,
              ElementsAre(HasSubstr("add /opt/railhead/runtime:/opt/railhead/nccl-net to it")));
  // Ours, from an earlier call.
  pod["spec"]["containers"][1]["env"][0]["value"] = LibraryPath(kBoth) + ":/mine";
  EXPECT_THAT(Add(pod).warnings, IsEmpty());
}

TEST(AddLibrariesTest, NothingIsAddedUnlessAskedFor) {
  EXPECT_EQ(Add(Pod(), {}).pod, Pod());
  Json pod = Pod();
  pod["spec"] = {{"containers", {{{"name", "web"}, {"image", "x"}}}}};
  EXPECT_EQ(Add(pod).pod, pod);
}

}  // namespace
}  // namespace railhead::op
