// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/nri/memlock.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/match.h"

namespace railhead::device_plugin::nri {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

constexpr char kMemlock[] = "RLIMIT_MEMLOCK";
constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();  // RLIM_INFINITY
constexpr char kUlimitAdjuster[] = "ulimits.nri.containerd.io";

bool HoldsRdmaDevice(const api::Container& container) {
  const auto& devices = container.linux().devices();
  return std::any_of(devices.begin(), devices.end(), [](const api::LinuxDevice& device) {
    return absl::StartsWith(device.path(), "/dev/infiniband/uverbs");
  });
}

bool IsUnlimited(const api::Container& container) {
  return std::any_of(container.rlimits().begin(), container.rlimits().end(),
                     [](const api::POSIXRlimit& limit) {
                       return limit.type() == kMemlock && limit.soft() == kUnlimited;
                     });
}

bool HasChosen(const api::PodSandbox& pod) {
  return std::any_of(pod.annotations().begin(), pod.annotations().end(), [](const auto& entry) {
    return absl::StartsWith(entry.first, kUlimitAdjuster);
  });
}

}  // namespace

api::ContainerAdjustment AdjustMemlock(const api::PodSandbox& pod,
                                       const api::Container& container) {
  api::ContainerAdjustment adjustment;
  if (!HoldsRdmaDevice(container) || IsUnlimited(container) || HasChosen(pod)) return adjustment;
  api::POSIXRlimit& limit = *adjustment.add_rlimits();
  limit.set_type(kMemlock);
  limit.set_hard(kUnlimited);
  limit.set_soft(kUnlimited);
  return adjustment;
}

}  // namespace railhead::device_plugin::nri
