// SPDX-License-Identifier: Apache-2.0
//
// PCI functions in sysfs.
#ifndef RAILHEAD_FABRIC_SYSFS_PCI_H_
#define RAILHEAD_FABRIC_SYSFS_PCI_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/inventory.h"
#include "fabric/pci_path.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

struct PciFunction {
  std::string address;
  int numa_node = -1;             // -1: unknown
  PciPath path;                   // empty: unknown
  std::string vendor;             // "15b3"; "" if unreadable
  std::string device;             // "1021"; "" if unreadable
  std::string driver;             // "mlx5_core"; "" if none
  std::string part;               // "sf88" for a subfunction below it; else ""
  std::string physical_function;  // address of the PF of a virtual function; else ""
  bool orphan = false;            // the PF is not on the PCI bus
};

// Returns the number in an attribute such as "0x030200". Nullopt if it is unreadable.
std::optional<uint32_t> ReadHex(const RootFiles& files, const std::string& path);

// Returns the PCI function behind a `device` link, which may name a child of it: a virtio or
// auxiliary device. Nullopt if there is none.
std::optional<PciFunction> FunctionBehind(const RootFiles& files, const std::string& device_link);

// Returns the GPUs in /sys/bus/pci/devices, by address: functions of PCI classes 0300, 0302, 0380
// and 1200 with a vendor id in `vendors` (four lower-case hex digits), without virtual functions,
// which are shares of a GPU. Empty without PCI.
std::vector<Gpu> ReadGpus(const RootFiles& files, const std::vector<std::string>& vendors);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_SYSFS_PCI_H_
