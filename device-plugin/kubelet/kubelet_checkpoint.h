// SPDX-License-Identifier: Apache-2.0
//
// The file in which kubelet keeps what it has given to whom (device-plugins/
// kubelet_internal_checkpoint). It is kubelet's own, and no interface: whoever uses it must do
// without it when it is missing or looks otherwise.
//
// What it tells and the PodResources API does not: kubelet writes it when a container has got all
// of its devices (pkg/kubelet/cm/devicemanager, manager.go), while PodResources shows a container
// with what it has got so far.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_KUBELET_CHECKPOINT_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_KUBELET_CHECKPOINT_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::device_plugin {

// One resource of one container. Entries of pods that have gone stay until the next allocation.
struct CheckpointEntry {
  std::string pod_uid;
  std::string resource;
  std::set<std::string> ids;

  bool operator==(const CheckpointEntry&) const = default;
};

// Nothing for any text that is not such a file.
std::optional<std::vector<CheckpointEntry>> ParseKubeletCheckpoint(absl::string_view json);

// From `kubelet_dir`, kubelet's folder of device plugins. Nothing when there is no such file.
std::optional<std::vector<CheckpointEntry>> ReadKubeletCheckpoint(const std::string& kubelet_dir);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_KUBELET_CHECKPOINT_H_
