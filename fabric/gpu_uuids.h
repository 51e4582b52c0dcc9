// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA GPUs by UUID. The node agent uses it to find the GPUs that kubelet names by UUID.
#ifndef RAILHEAD_FABRIC_GPU_UUIDS_H_
#define RAILHEAD_FABRIC_GPU_UUIDS_H_

#include <map>
#include <string>

#include "fabric/root_files.h"

namespace railhead::fabric {

// Returns UUID ("GPU-...") to PCI address of the node's NVIDIA GPUs, from the kernel driver's
// /proc/driver/nvidia/gpus/<address>/information. Empty if the driver is not loaded.
std::map<std::string, std::string> ReadGpuUuids(const RootFiles& files);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_GPU_UUIDS_H_
