// SPDX-License-Identifier: Apache-2.0
//
// PCI functions as sysfs shows them.
#ifndef RAILHEAD_FABRIC_SYSFS_PCI_H_
#define RAILHEAD_FABRIC_SYSFS_PCI_H_

#include <optional>
#include <string>
#include <vector>

#include "fabric/inventory.h"
#include "fabric/pci_path.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

struct PciFunction {
  std::string address;
  int numa_node = -1;             // -1 when the machine does not say
  PciPath path;                   // empty when it is not known
  std::string vendor;             // "15b3"; "" when it cannot be read
  std::string device;             // "1021"; "" when it cannot be read
  std::string driver;             // "mlx5_core"; "" when there is none
  std::string part;               // of a device below it that is a subfunction: "sf88"; else ""
  std::string physical_function;  // of a virtual function: the address of its PF; else ""
  bool orphan = false;            // that PF is not on the PCI bus
};

// The PCI function behind a `device` link. It may be a parent of what the link names: a virtio
// device or an auxiliary device hangs below its PCI function. Nothing when no function is named.
std::optional<PciFunction> FunctionBehind(const RootFiles& files, const std::string& device_link);

// The GPUs among /sys/bus/pci/devices, by address: functions of the PCI classes 0300, 0302, 0380
// and 1200 whose vendor id is in `vendors` (four hex digits in lower case), without virtual
// functions, which are shares of a GPU. Empty where there is no PCI.
std::vector<Gpu> ReadGpus(const RootFiles& files, const std::vector<std::string>& vendors);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_SYSFS_PCI_H_
