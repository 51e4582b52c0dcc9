// SPDX-License-Identifier: Apache-2.0
#include "operator/shared_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "operator/json_patch.h"

namespace railhead::op {
namespace {

using kube::Json;
using kube::StringAt;

constexpr char kVolume[] = "railhead-shm";
constexpr char kPath[] = "/dev/shm";

// The list, or null when there is none yet.
absl::StatusOr<const Json*> ListOf(const Json& object, absl::string_view name,
                                   absl::string_view path) {
  const Json* list = kube::Find(object, name);
  if (list == nullptr || list->is_null()) return nullptr;
  if (!list->is_array()) return absl::InvalidArgumentError(absl::StrCat(path, " is not a list"));
  return list;
}

bool MountsSharedMemory(const Json* mounts) {
  return mounts != nullptr && std::any_of(mounts->begin(), mounts->end(), [](const Json& mount) {
           const std::string path = StringAt(mount, {"mountPath"});
           absl::string_view trimmed = path;
           while (absl::ConsumeSuffix(&trimmed, "/")) {
           }
           return trimmed == kPath;
         });
}

void Append(const Json* list, const std::string& path, Json value, Json& patch) {
  if (list == nullptr) {
    patch.push_back(AddOperation(path, Json::array({std::move(value)})));
  } else {
    patch.push_back(AddOperation(path + "/-", std::move(value)));
  }
}

}  // namespace

absl::Status AddSharedMemory(const Json& pod_spec, const std::vector<RdmaContainer>& containers,
                             const std::string& size, Json& patch,
                             std::vector<std::string>& warnings) {
  const Json* host_ipc = kube::Find(pod_spec, "hostIPC");
  if (host_ipc != nullptr && host_ipc->is_boolean() && host_ipc->get<bool>()) {
    return absl::OkStatus();
  }
  Json mounts_patch = Json::array();
  for (const RdmaContainer& target : containers) {
    const std::string path = absl::StrCat("/spec", target.pointer, "/volumeMounts");
    const absl::StatusOr<const Json*> mounts = ListOf(*target.container, "volumeMounts", path);
    if (!mounts.ok()) return mounts.status();
    if (MountsSharedMemory(*mounts)) continue;
    Append(*mounts, path, {{"name", kVolume}, {"mountPath", kPath}}, mounts_patch);
  }
  if (mounts_patch.empty()) return absl::OkStatus();

  const absl::StatusOr<const Json*> volumes = ListOf(pod_spec, "volumes", "/spec/volumes");
  if (!volumes.ok()) return volumes.status();
  const Json* existing = nullptr;
  if (*volumes != nullptr) {
    for (const Json& volume : **volumes) {
      if (StringAt(volume, {"name"}) == kVolume) existing = &volume;
    }
  }
  if (existing == nullptr) {
    Append(*volumes, "/spec/volumes",
           {{"name", kVolume}, {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", size}}}}, patch);
  } else if (StringAt(*existing, {"emptyDir", "medium"}) != "Memory") {
    warnings.push_back(absl::StrCat("railhead: /dev/shm stays as it is: the pod has a volume ",
                                    kVolume, " of its own: give it another name"));
    return absl::OkStatus();
  }
  for (Json& operation : mounts_patch) patch.push_back(std::move(operation));
  return absl::OkStatus();
}

}  // namespace railhead::op
