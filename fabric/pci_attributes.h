// SPDX-License-Identifier: Apache-2.0
//
// Sysfs attributes of PCI functions on the paths to a node's GPUs and HCAs.
#ifndef RAILHEAD_FABRIC_PCI_ATTRIBUTES_H_
#define RAILHEAD_FABRIC_PCI_ATTRIBUTES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "fabric/inventory.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

// Nullopt, "" and 0 mean unreadable.
struct PciAttributes {
  std::optional<uint32_t> pci_class = std::nullopt;  // 0x030200
  std::optional<uint32_t> vendor = std::nullopt;
  std::optional<uint32_t> device = std::nullopt;
  std::optional<uint32_t> subsystem_vendor = std::nullopt;
  std::optional<uint32_t> subsystem_device = std::nullopt;
  std::string max_link_speed = "";  // "32.0 GT/s PCIe"
  int max_link_width = 0;           // lanes

  bool operator==(const PciAttributes&) const = default;
};

using PciAttributesMap = std::map<std::string, PciAttributes>;  // by PCI address

PciAttributesMap ReadPciAttributes(const RootFiles& files, const NodeInventory& inventory);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_PCI_ATTRIBUTES_H_
