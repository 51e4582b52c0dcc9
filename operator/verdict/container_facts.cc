// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/container_facts.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "kube/elements.h"
#include "operator/objects/quantity.h"

namespace railhead::op::verdict {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

// Annotation that sets another size in CRI-O.
constexpr absl::string_view kCrioSharedMemory = "io.kubernetes.cri-o.ShmSize";

// One for each rail of the largest node.
constexpr size_t kMostResources = 64;

constexpr absl::string_view kWatched[] = {
    "GLOO_SOCKET_IFNAME",  "NCCL_ALGO",
    "NCCL_COLLNET_ENABLE", "NCCL_IB_DISABLE",
    "NCCL_IB_HCA",         "NCCL_IB_SL",
    "NCCL_IB_TC",          "NCCL_NET",
    "NCCL_NET_GDR_LEVEL",  "NCCL_NET_GDR_READ",
    "NCCL_NET_PLUGIN",     "NCCL_PROTO",
    "NCCL_SOCKET_IFNAME",  "RAILHEAD_ALGO",
    "RAILHEAD_FALLBACK",   "RAILHEAD_IB_SL",
    "RAILHEAD_IB_TC",      "RAILHEAD_SOCKET_IFNAME",
    "RAILHEAD_TRANSPORT",  "RANK",
};

int64_t CountOf(const Json& quantity) {
  return static_cast<int64_t>(std::min(ParseQuantity(quantity).value_or(0), 1e9));
}

void ReadResources(const Json& container, const RdmaResources& rdma, ContainerFacts& facts) {
  for (const absl::string_view section : {"requests", "limits"}) {  // a device has both alike
    const Json* resources = FindPath(container, {"resources", section});
    if (resources == nullptr || !resources->is_object()) continue;
    for (const auto& [name, quantity] : resources->items()) {
      if (rdma.Contains(name) && CountOf(quantity) > 0) {
        if (facts.devices.size() >= kMostResources && !facts.devices.contains(name)) continue;
        facts.devices[name] = CountOf(quantity);
      } else if (name == "nvidia.com/gpu" || name == "amd.com/gpu") {
        facts.gpus = CountOf(quantity);
      }
    }
  }
}

void ReadEnvironment(const Json& container, size_t& room, ContainerFacts& facts) {
  for (const Json& variable : kube::ElementsAt(container, {"env"})) {
    const std::string name = StringAt(variable, {"name"});
    if (std::find(std::begin(kWatched), std::end(kWatched), name) == std::end(kWatched)) continue;
    const std::string value = StringAt(variable, {"value"});
    // The last of a name wins, known or not.
    facts.environment.erase(name);
    if (Find(variable, "valueFrom") != nullptr || absl::StrContains(value, "$(")) continue;
    if (value.empty() || value.size() > room) continue;
    room -= value.size();
    facts.environment[name] = value;
  }
}

// A field of the container's security context, or else of the pod's.
const Json* SecurityOf(const Json& container, const Json& pod, absl::string_view field) {
  const Json* own = FindPath(container, {"securityContext", field});
  if (own != nullptr && !own->is_null()) return own;
  return FindPath(pod, {"spec", "securityContext", field});
}

bool HoldsIpcLock(const Json& container) {
  const Json* privileged = FindPath(container, {"securityContext", "privileged"});
  if (privileged != nullptr && privileged->is_boolean() && privileged->get<bool>()) return true;
  const auto& added = kube::ElementsAt(container, {"securityContext", "capabilities", "add"});
  return std::any_of(added.begin(), added.end(), [](const Json& capability) {
    return capability == "IPC_LOCK" || capability == "CAP_IPC_LOCK" || capability == "ALL";
  });
}

void ReadSecurity(const Json& container, const Json& pod, ContainerFacts& facts) {
  const Json* user = SecurityOf(container, pod, "runAsUser");
  const Json* non_root = SecurityOf(container, pod, "runAsNonRoot");
  facts.non_root = (user != nullptr && user->is_number_integer() && *user != 0) ||
                   (non_root != nullptr && non_root->is_boolean() && non_root->get<bool>());
  // A capability that is added reaches root only: nothing makes it ambient for others.
  facts.memlock_applies = facts.non_root || !HoldsIpcLock(container);
}

bool IsTrue(const Json* value) {
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

std::optional<double> SharedMemoryOf(const Json& container, const Json& pod, bool& assumed) {
  if (IsTrue(FindPath(pod, {"spec", "hostIPC"}))) return std::nullopt;
  std::string volume;
  for (const Json& mount : kube::ElementsAt(container, {"volumeMounts"})) {
    const std::string path = StringAt(mount, {"mountPath"});
    absl::string_view trimmed = path;
    while (absl::ConsumeSuffix(&trimmed, "/")) {
    }
    if (trimmed == "/dev/shm" || trimmed == "/dev") volume = StringAt(mount, {"name"});
  }
  if (volume.empty()) {
    assumed = StringAt(pod, {"metadata", "annotations", kCrioSharedMemory}).empty();
    return assumed ? std::optional<double>(kUsualSharedMemory) : std::nullopt;
  }
  for (const Json& candidate : kube::ElementsAt(pod, {"spec", "volumes"})) {
    if (StringAt(candidate, {"name"}) != volume) continue;
    const Json* limit = FindPath(candidate, {"emptyDir", "sizeLimit"});
    if (limit != nullptr) return ParseQuantity(*limit);
  }
  return std::nullopt;
}

}  // namespace

absl::Span<const absl::string_view> WatchedVariables() { return kWatched; }

ContainerFacts ContainerFactsOf(const Json& container, const Json& pod, const RdmaResources& rdma,
                                size_t& room) {
  ContainerFacts facts;
  facts.name = StringAt(container, {"name"});
  ReadResources(container, rdma, facts);
  ReadEnvironment(container, room, facts);
  ReadSecurity(container, pod, facts);
  facts.shared_memory = SharedMemoryOf(container, pod, facts.shared_memory_assumed);
  return facts;
}

}  // namespace railhead::op::verdict
