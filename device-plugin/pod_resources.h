// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_DEVICE_PLUGIN_POD_RESOURCES_H_
#define RAILHEAD_DEVICE_PLUGIN_POD_RESOURCES_H_

#include <chrono>
#include <set>
#include <string>

#include "absl/status/statusor.h"

namespace railhead::device_plugin {

// Asks kubelet which device ids of `resource` the containers on this node hold. Fails when kubelet
// does not answer within `deadline`: then nothing is known.
absl::StatusOr<std::set<std::string>> DevicesInUse(const std::string& socket_path,
                                                   const std::string& resource,
                                                   std::chrono::milliseconds deadline);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_POD_RESOURCES_H_
