// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/status/status.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::StartsWith;

Injection Ofi() {
  return {"r.example/railhead/runtime:1", "r.example/ofi:2", "/opt/ofi/lib/libnccl-net-ofi.so"};
}

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
  EXPECT_EQ(*read(R"({"ncclPlugin": {"image": "b"}})"), (Injection{"", "b", ""}));
  EXPECT_TRUE(read(R"({"ncclPlugin": {"image": "b"}})")->own_plugin());
  EXPECT_FALSE(Ofi().own_plugin());
  EXPECT_FALSE(read(R"({"runtime": {"image": "a"}})")->own_plugin());
  EXPECT_EQ(*read(R"({"runtime": {"image": "a", "frameworks": ["mlx", "torch"]}})"),
            (Injection{"a", "", "", {"mlx", "torch"}}));
}

TEST(ReadInjectionTest, RefusesTheRestByItsPath) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"[]", "spec.inject: "},
      {"{}", "spec.inject: must contain runtime or ncclPlugin"},
      {R"({"runtime": null})", "spec.inject: must contain runtime or ncclPlugin"},
      {R"({"plugin": {}})", "spec.inject.plugin: "},
      {R"({"runtime": "a"})", "spec.inject.runtime: "},
      {R"({"runtime": {}})", "spec.inject.runtime.image: is missing"},
      {R"({"runtime": {"image": "a", "tag": "b"}})", "spec.inject.runtime.tag: "},
      {R"({"runtime": {"image": ""}})", "spec.inject.runtime.image: must be an image"},
      {R"({"runtime": {"image": "a b"}})", "spec.inject.runtime.image: must be an image"},
      {R"({"runtime": {"image": "-a"}})", "spec.inject.runtime.image: must be an image"},
      {R"({"runtime": {"image": "a:"}})", "spec.inject.runtime.image: must be an image"},
      {R"({"runtime": {"image": 1}})", "spec.inject.runtime.image: "},
      {R"({"runtime": {"image": "a", "frameworks": "jax"}})",
       "spec.inject.runtime.frameworks: must be a list"},
      {R"({"runtime": {"image": "a", "frameworks": ["jax", "caffe"]}})",
       "spec.inject.runtime.frameworks[1]: must be one of torch, jax, mlx, mpi"},
      {R"({"ncclPlugin": {}})", "spec.inject.ncclPlugin.image: is missing"},
      {R"({"ncclPlugin": {"image": "a", "library": 1}})", "spec.inject.ncclPlugin.library: "},
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
  using Variables = std::map<std::string, std::string>;
  const char* const name = "LD_LIBRARY_PATH";
  EXPECT_EQ(SearchPaths(Ofi()),
            (Variables{{name, "/opt/railhead/runtime:/opt/railhead/nccl-net"}}));
  EXPECT_EQ(SearchPaths({"a", "", ""}), (Variables{{name, "/opt/railhead/runtime"}}));
  EXPECT_EQ(SearchPaths({"a", "b", "/l/libnccl-net.so", {"torch", "jax"}}),
            (Variables{{name, "/opt/railhead/nccl-net"},
                       {"PYTHONPATH", "/opt/railhead/runtime/python"}}));
  EXPECT_EQ(SearchPaths({"a", "", "", {"jax", "mlx"}}), Variables());
  EXPECT_EQ(SearchPaths({"a", "", "", {"mpi"}}),
            (Variables{{name, "/opt/railhead/runtime/railhead-mpi:/opt/railhead/runtime"}}));
  EXPECT_EQ(FrameworkVariables({"a", "", "", {"mlx"}}),
            (Variables{{"MLX_MPI_LIBNAME", "/opt/railhead/runtime/railhead-mpi/libmpi.so.40"}}));
  EXPECT_EQ(FrameworkVariables({"a", "", "", {"torch", "mpi"}}), Variables());
  EXPECT_EQ(PluginName(Ofi()), "ofi");
  EXPECT_EQ(PluginName({"", "a", "/l/libnccl-net.so"}), "");  // NCCL's own choice
  EXPECT_EQ(PluginName({"a", "", ""}), "");
  // Railhead's own plugin, by its path: the list of the pod's image stays as it is.
  EXPECT_EQ(PluginName({"", "a", ""}), "/opt/railhead/nccl-net/libnccl-net-railhead.so");
  EXPECT_EQ(SearchPaths({"", "a", ""}), Variables());
  EXPECT_EQ(SearchPaths({"a", "a", "", {"torch"}}),
            (Variables{{"PYTHONPATH", "/opt/railhead/runtime/python"}}));
}

}  // namespace
}  // namespace railhead::op
