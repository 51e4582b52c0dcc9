// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_DEVICE_PLUGIN_POD_RESOURCES_H_
#define RAILHEAD_DEVICE_PLUGIN_POD_RESOURCES_H_

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"

namespace railhead::device_plugin {

struct PodName {
  std::string in_namespace;
  std::string name;

  bool operator==(const PodName&) const = default;
  bool operator<(const PodName& other) const {
    return std::tie(in_namespace, name) < std::tie(other.in_namespace, other.name);
  }
};

// Device ids to the pods that hold them: more than one where kubelet still lists a pod that has
// ended beside the one that came after it.
using DeviceHolders = std::map<std::string, std::set<PodName>>;

// Asks kubelet which pods on this node hold which devices of `resource`. Fails when kubelet does
// not answer within `deadline`: then nothing is known.
absl::StatusOr<DeviceHolders> AskDeviceHolders(const std::string& socket_path,
                                               const std::string& resource,
                                               std::chrono::milliseconds deadline);

// The same, without the pods' names.
absl::StatusOr<std::set<std::string>> DevicesInUse(const std::string& socket_path,
                                                   const std::string& resource,
                                                   std::chrono::milliseconds deadline);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_POD_RESOURCES_H_
