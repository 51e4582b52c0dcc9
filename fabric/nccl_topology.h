// SPDX-License-Identifier: Apache-2.0
//
// A node's PCI tree as the file that NCCL reads (NCCL_TOPO_FILE), for containers that cannot see it
// themselves.
#ifndef RAILHEAD_FABRIC_NCCL_TOPOLOGY_H_
#define RAILHEAD_FABRIC_NCCL_TOPOLOGY_H_

#include <string>

#include "fabric/cpu_model.h"
#include "fabric/inventory.h"
#include "fabric/pci_attributes.h"

namespace railhead::fabric {

// One element cpu for each NUMA node, below it the GPUs, HCAs and the switches above them: one
// bridge for each switch, as NCCL itself takes it from sysfs, since it counts them. NCCL adds what
// it knows of the GPUs (gpu, nvlink) and drops what the container does not have. All that it would
// refuse a file without is there, whether sysfs tells it or not. A device whose way is not known is
// left out.
std::string NcclTopology(const NodeInventory& inventory, const PciAttributesMap& attributes,
                         const CpuModel& cpu);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_NCCL_TOPOLOGY_H_
