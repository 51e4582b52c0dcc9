// SPDX-License-Identifier: Apache-2.0
//
// Check of resource names, with which the agent rejects a configuration that kubelet would not
// accept. Used by the configuration reader.
#ifndef RAILHEAD_DEVICE_PLUGIN_CONFIG_RESOURCE_NAME_H_
#define RAILHEAD_DEVICE_PLUGIN_CONFIG_RESOURCE_NAME_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace railhead::device_plugin {

// Returns OK if kubelet accepts the name as an extended resource: domain/name, such as "rdma/hca",
// outside kubernetes.io.
absl::Status CheckResourceName(absl::string_view resource);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CONFIG_RESOURCE_NAME_H_
