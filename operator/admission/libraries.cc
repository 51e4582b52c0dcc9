// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/libraries.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/admission/init_container.h"
#include "operator/admission/lists.h"
#include "operator/admission/volume.h"

namespace railhead::op {
namespace {

using kube::Find;
using kube::Json;
using kube::StringAt;

constexpr char kLibrariesVolume[] = "railhead-libraries";
constexpr char kLibrariesFolder[] = "/opt/railhead";

// The path without its last part.
std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

struct Copy {
  const char* name;  // of the init container
  std::string image;
  Json command;
};

// Railhead's image has one program, which copies what it has; others have a shell.
std::vector<Copy> CopiesOf(const Injection& injection) {
  std::vector<Copy> copies;
  if (!injection.runtime_image.empty()) {
    copies.push_back(
        {"railhead-copy-runtime", injection.runtime_image, {"/railhead-copy", kRuntimeLibraries}});
  }
  if (injection.own_plugin()) {
    copies.push_back({"railhead-copy-nccl-net",
                      injection.plugin_image,
                      {"/railhead-copy", kPluginLibraries, "nccl-net"}});
  } else if (!injection.plugin_image.empty()) {
    copies.push_back({"railhead-copy-nccl-net",
                      injection.plugin_image,
                      {"/bin/sh", "-ec", "mkdir -p \"$2\"; cp -R \"$1\"/. \"$2\"", "copy",
                       FolderOf(injection.plugin_library), kPluginLibraries}});
  }
  return copies;
}

void WarnOfOwnPaths(const Json& container, const Injection& injection, Draft& pod) {
  const Json* env = Find(container, "env");
  if (env == nullptr || !env->is_array()) return;
  for (const auto& [variable, path] : SearchPaths(injection)) {
    const Json* own = Named(env, variable);
    if (own == nullptr || absl::StartsWith(StringAt(*own, {"value"}), path)) continue;
    pod.Warn(absl::StrCat("container ", StringAt(container, {"name"}), " sets ", variable,
                          " itself: add ", path,
                          " to it, otherwise the libraries there are not found"));
  }
}

}  // namespace

absl::StatusOr<std::vector<Json>> AddLibraries(const Injection& injection,
                                               const std::vector<std::string>& containers,
                                               Draft& pod) {
  std::vector<Json> copies;
  if (injection.empty() || containers.empty()) return copies;
  const absl::StatusOr<const Json*> volumes = ListAt(pod, "/spec/volumes");
  if (!volumes.ok()) return volumes.status();
  const Json* volume = Named(*volumes, kLibrariesVolume);
  if (volume != nullptr && Find(*volume, "emptyDir") == nullptr) {
    pod.Warn(absl::StrCat("no libraries are added: the pod already has a volume ", kLibrariesVolume,
                          ": rename it"));
    return copies;
  }
  std::vector<std::string> without;  // pointers to the mounts of containers that lack ours
  for (const std::string& pointer : containers) {
    const Json& container = *pod.At("/spec" + pointer);
    const std::string path = absl::StrCat("/spec", pointer, "/volumeMounts");
    const absl::StatusOr<const Json*> mounts = ListAt(pod, path);
    if (!mounts.ok()) return mounts.status();
    WarnOfOwnPaths(container, injection, pod);
    const Json* own = MountAt(*mounts, kLibrariesFolder);
    if (own == nullptr) {
      without.push_back(path);
    } else if (StringAt(*own, {"name"}) != kLibrariesVolume) {
      pod.Warn(absl::StrCat("container ", StringAt(container, {"name"}),
                            " gets no libraries: it already has a mount at ", kLibrariesFolder));
    }
  }
  absl::Status mounted =
      AddVolume({{"name", kLibrariesVolume}, {"emptyDir", {{"sizeLimit", "1Gi"}}}},
                {{"name", kLibrariesVolume}, {"mountPath", kLibrariesFolder}, {"readOnly", true}},
                without, pod);
  if (!mounted.ok()) return mounted;
  const Json& served = *pod.At("/spec" + containers.front());
  for (const Copy& copy : CopiesOf(injection)) {
    copies.push_back(InitContainer(copy.name, copy.image, copy.command,
                                   {{"name", kLibrariesVolume}, {"mountPath", kLibrariesFolder}},
                                   served, *pod.At("/spec")));
  }
  return copies;
}

}  // namespace railhead::op
