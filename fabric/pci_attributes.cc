// SPDX-License-Identifier: Apache-2.0
#include "fabric/pci_attributes.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fabric/pci_path.h"
#include "fabric/sysfs_pci.h"

namespace railhead::fabric {
namespace {

PciAttributes ReadFunction(const RootFiles& files, absl::string_view address) {
  const std::string folder = absl::StrCat("/sys/bus/pci/devices/", address, "/");
  PciAttributes attributes;
  attributes.pci_class = ReadHex(files, folder + "class");
  attributes.vendor = ReadHex(files, folder + "vendor");
  attributes.device = ReadHex(files, folder + "device");
  attributes.subsystem_vendor = ReadHex(files, folder + "subsystem_vendor");
  attributes.subsystem_device = ReadHex(files, folder + "subsystem_device");
  attributes.max_link_speed = files.ReadAttribute(folder + "max_link_speed").value_or("");
  int width = 0;
  // If it is unknown, Linux reports 255.
  if (absl::SimpleAtoi(files.ReadAttribute(folder + "max_link_width").value_or(""), &width) &&
      width > 0 && width <= 32) {
    attributes.max_link_width = width;
  }
  return attributes;
}

}  // namespace

PciAttributesMap ReadPciAttributes(const RootFiles& files, const NodeInventory& inventory) {
  PciAttributesMap found;
  const auto add = [&](const PciPath& path) {
    for (const std::string& address : path.functions) {
      if (!found.contains(address)) found[address] = ReadFunction(files, address);
    }
  };
  for (const Gpu& gpu : inventory.gpus) add(gpu.path);
  for (const Hca& hca : inventory.hcas) add(hca.path);
  return found;
}

}  // namespace railhead::fabric
