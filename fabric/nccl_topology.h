// SPDX-License-Identifier: Apache-2.0
//
// Writer of NCCL's topology file (NCCL_TOPO_FILE): a node's PCI tree, for containers that cannot
// see it.
#ifndef RAILHEAD_FABRIC_NCCL_TOPOLOGY_H_
#define RAILHEAD_FABRIC_NCCL_TOPOLOGY_H_

#include <string>

#include "fabric/cpu_model.h"
#include "fabric/inventory.h"
#include "fabric/pci_attributes.h"

namespace railhead::fabric {

// One element cpu per NUMA node contains GPUs, HCAs and the switches above them: one bridge per
// switch, as NCCL counts them in sysfs. NCCL adds GPU details (gpu, nvlink) and removes devices
// that the container lacks. All attributes that NCCL requires are present, even if sysfs lacks
// them. Devices with an unknown path are omitted.
std::string NcclTopology(const NodeInventory& inventory, const PciAttributesMap& attributes,
                         const CpuModel& cpu);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_NCCL_TOPOLOGY_H_
