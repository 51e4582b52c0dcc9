// SPDX-License-Identifier: Apache-2.0
//
// Finds the GPUs of the container that kubelet is admitting.
//
// Allocate does not name the container. But kubelet allocates all devices of one container before
// the next, lists a container with the devices that it already has, and writes complete containers
// to its checkpoint (kubelet_checkpoint.h). So the container in admission is recent, has GPUs, has
// no device of the agent, and is not in the checkpoint.
#ifndef RAILHEAD_DEVICE_PLUGIN_HOLDINGS_GPU_WATCH_H_
#define RAILHEAD_DEVICE_PLUGIN_HOLDINGS_GPU_WATCH_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Returns the PCI address of the GPU of a device plugin's id: by `uuids` (NVIDIA's ids are UUIDs),
// or because the id contains the address of one of `gpus` (AMD's do). "" if it is not a GPU.
std::string GpuAddress(const std::string& id, const std::vector<fabric::Gpu>& gpus,
                       const std::map<std::string, std::string>& uuids);

// Returns "namespace/pod/container".
std::string KeyOf(const ContainerDevices& container);

// Returns PCI addresses of the container's GPUs, sorted.
std::vector<std::string> GpusOf(const ContainerDevices& container,
                                const std::vector<fabric::Gpu>& gpus,
                                const std::map<std::string, std::string>& uuids);

// Pure; not thread-safe. Used by Agent.
class GpuWatch {
 public:
  // Updates with kubelet's list and checkpoint. A container listed in two such updates, or written
  // to the checkpoint at one, is not in admission; call it every few seconds (an admission takes
  // far less).
  void Look(const std::vector<ContainerDevices>& listed,
            const std::vector<CheckpointEntry>& checkpoint);

  // Returns PCI addresses of the GPUs of the container in admission, from kubelet's current list
  // and checkpoint. `ours`: names of the agent's resources. The last of several candidates; empty
  // if there is none.
  std::vector<std::string> InAdmission(const std::vector<ContainerDevices>& listed,
                                       const std::vector<CheckpointEntry>& checkpoint,
                                       const std::set<std::string>& ours,
                                       const std::vector<fabric::Gpu>& gpus,
                                       const std::map<std::string, std::string>& uuids) const;

 private:
  // Returns true if the container is in the checkpoint with all its devices.
  bool WrittenDown(const ContainerDevices& container,
                   const std::vector<CheckpointEntry>& checkpoint) const;

  std::set<std::string> latest_;   // keys of the containers in the latest update
  std::set<std::string> settled_;  // those of them that were not in admission
  // Pods in the checkpoint at the latest update. A terminated pod stays there for a time, with
  // devices that a new pod may have got since.
  std::set<std::string> old_uids_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_HOLDINGS_GPU_WATCH_H_
