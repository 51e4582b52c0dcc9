// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs has the container that kubelet is about to give HCAs to?
//
// Kubelet does not say for whom it asks. But it admits one pod at a time, and lists a container
// with what it has got so far: the one that is asked for is a container that has not been there for
// long, has GPUs, and none of our devices yet.
#ifndef RAILHEAD_DEVICE_PLUGIN_GPU_WATCH_H_
#define RAILHEAD_DEVICE_PLUGIN_GPU_WATCH_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "device-plugin/pod_resources.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// The PCI address of the GPU that a device plugin's id stands for: by `uuids` (NVIDIA's ids are the
// GPUs' UUIDs), or because the id holds the address of one of `gpus` (AMD's do). "" for what is no
// GPU.
std::string GpuAddress(const std::string& id, const std::vector<fabric::Gpu>& gpus,
                       const std::map<std::string, std::string>& uuids);

// Not thread-safe. The pure part.
class GpuWatch {
 public:
  // Takes what kubelet lists now. A container that was listed at two such looks is not being
  // admitted; call it every few seconds (an admission takes far less).
  void Look(const std::vector<ContainerDevices>& listed);

  // PCI addresses of the GPUs of the container in admission, from what kubelet lists now. `ours`:
  // the names of our resources. Of several candidates it is the last (kubelet gives one container
  // all it wants before the next one). Empty when there is none.
  std::vector<std::string> InAdmission(const std::vector<ContainerDevices>& listed,
                                       const std::set<std::string>& ours,
                                       const std::vector<fabric::Gpu>& gpus,
                                       const std::map<std::string, std::string>& uuids) const;

 private:
  std::set<std::string> latest_;   // keys of the containers of the latest look
  std::set<std::string> settled_;  // of those that the look before had as well
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_GPU_WATCH_H_
