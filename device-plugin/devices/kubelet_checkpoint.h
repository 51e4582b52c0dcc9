// SPDX-License-Identifier: Apache-2.0
//
// Reader of kubelet's allocation file (device-plugins/kubelet_internal_checkpoint). The file is
// internal to kubelet: callers must work without it if it is missing or has another format.
//
// It adds to PodResources: kubelet writes it after a container got all of its devices
// (pkg/kubelet/cm/devicemanager, manager.go), while PodResources also shows a container whose
// devices are not complete. Used by GpuWatch and holdings.h.
#ifndef RAILHEAD_DEVICE_PLUGIN_DEVICES_KUBELET_CHECKPOINT_H_
#define RAILHEAD_DEVICE_PLUGIN_DEVICES_KUBELET_CHECKPOINT_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::device_plugin {

// One resource of one container. Entries of terminated pods stay until the next allocation.
struct CheckpointEntry {
  std::string pod_uid;
  std::string resource;
  std::set<std::string> ids;
  // The folder in the agent's response that gets the job's secret (files/secret_folders.h); "": its
  // response names none.
  std::string secret_folder = {};
  std::string container = {};
  // The rails.json that the response names (devices/rails_file_name.h); "": it names none, as with
  // CDI.
  std::string rails_file = {};

  bool operator==(const CheckpointEntry&) const = default;
};

// Returns nullopt for any text of another format.
std::optional<std::vector<CheckpointEntry>> ParseKubeletCheckpoint(absl::string_view json);

// Reads it from `kubelet_dir`, kubelet's device-plugin directory. Nullopt if there is no such file.
std::optional<std::vector<CheckpointEntry>> ReadKubeletCheckpoint(const std::string& kubelet_dir);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DEVICES_KUBELET_CHECKPOINT_H_
