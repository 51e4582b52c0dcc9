// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs has the container that kubelet is about to give HCAs to?
//
// Kubelet does not say for whom it asks. But it gives one container all it wants before the next
// one, lists a container with what it has got so far, and writes down (kubelet_checkpoint.h) who
// has got all. So the one that is asked for has not been there for long, has GPUs, none of our
// devices yet, and is not written down.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_GPU_WATCH_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_GPU_WATCH_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "device-plugin/kubelet/kubelet_checkpoint.h"
#include "device-plugin/offer/container_devices.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// The PCI address of the GPU that a device plugin's id stands for: by `uuids` (NVIDIA's ids are the
// GPUs' UUIDs), or because the id holds the address of one of `gpus` (AMD's do). "" for what is no
// GPU.
std::string GpuAddress(const std::string& id, const std::vector<fabric::Gpu>& gpus,
                       const std::map<std::string, std::string>& uuids);

// "namespace/pod/container"
std::string KeyOf(const ContainerDevices& container);

// PCI addresses of the container's GPUs, sorted.
std::vector<std::string> GpusOf(const ContainerDevices& container,
                                const std::vector<fabric::Gpu>& gpus,
                                const std::map<std::string, std::string>& uuids);

// Not thread-safe. The pure part.
class GpuWatch {
 public:
  // Takes what kubelet lists and has written down now. A container that was listed at two such
  // looks is not being admitted, nor is one that is written down at a look; call it every few
  // seconds (an admission takes far less).
  void Look(const std::vector<ContainerDevices>& listed,
            const std::vector<CheckpointEntry>& checkpoint);

  // PCI addresses of the GPUs of the container in admission, from what kubelet lists and has
  // written down now. `ours`: the names of our resources. Of several candidates it is the last.
  // Empty when there is none.
  std::vector<std::string> InAdmission(const std::vector<ContainerDevices>& listed,
                                       const std::vector<CheckpointEntry>& checkpoint,
                                       const std::set<std::string>& ours,
                                       const std::vector<fabric::Gpu>& gpus,
                                       const std::map<std::string, std::string>& uuids) const;

 private:
  // Whether it has got all that it gets.
  bool WrittenDown(const ContainerDevices& container,
                   const std::vector<CheckpointEntry>& checkpoint) const;

  std::set<std::string> latest_;   // keys of the containers of the latest look
  std::set<std::string> settled_;  // of those that were not being admitted then
  // Pods that were written down at the latest look. A pod that has gone stays written down for a
  // while, with devices that a new one may have got since.
  std::set<std::string> old_uids_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_GPU_WATCH_H_
