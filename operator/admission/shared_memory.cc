// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/shared_memory.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "kube/json.h"
#include "operator/admission/lists.h"
#include "operator/admission/volume.h"

namespace railhead::op {
namespace {

using kube::Json;
using kube::StringAt;

constexpr char kShmVolume[] = "railhead-shm";
constexpr char kShmPath[] = "/dev/shm";

bool SharesTheHosts(const Json& spec) {
  const Json* host_ipc = kube::Find(spec, "hostIPC");
  return host_ipc != nullptr && host_ipc->is_boolean() && host_ipc->get<bool>();
}

}  // namespace

absl::Status AddSharedMemory(const std::string& size, const std::vector<std::string>& containers,
                             Draft& pod) {
  if (SharesTheHosts(*pod.At("/spec"))) return absl::OkStatus();
  std::vector<std::string> without;  // pointers to the mounts of containers that have no /dev/shm
  for (const std::string& pointer : containers) {
    const std::string path = absl::StrCat("/spec", pointer, "/volumeMounts");
    const absl::StatusOr<const Json*> mounts = ListAt(pod, path);
    if (!mounts.ok()) return mounts.status();
    if (MountAt(*mounts, kShmPath) == nullptr) without.push_back(path);
  }
  if (without.empty()) return absl::OkStatus();

  const absl::StatusOr<const Json*> volumes = ListAt(pod, "/spec/volumes");
  if (!volumes.ok()) return volumes.status();
  const Json* own = Named(*volumes, kShmVolume);
  if (own != nullptr && StringAt(*own, {"emptyDir", "medium"}) != "Memory") {
    pod.Warn(absl::StrCat("/dev/shm is unchanged: the pod already has a volume ", kShmVolume,
                          ": rename it"));
    return absl::OkStatus();
  }
  return AddVolume(
      {{"name", kShmVolume}, {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", size}}}},
      {{"name", kShmVolume}, {"mountPath", kShmPath}}, without, pod);
}

}  // namespace railhead::op
