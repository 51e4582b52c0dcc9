// SPDX-License-Identifier: Apache-2.0
//
// Where a PCI function hangs: the way from a host bridge down to it.
#ifndef RAILHEAD_FABRIC_PCI_PATH_H_
#define RAILHEAD_FABRIC_PCI_PATH_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

struct PciPath {
  std::string host_bridge;             // "pci0000:00"; "" when the way is not known
  std::vector<std::string> functions;  // bridges from the outermost on, then the function itself

  bool operator==(const PciPath&) const = default;
};

// Reads a path below /sys/devices, or the text of a link to one, such as
// "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0". What is below the last PCI function (a
// virtio device, a network interface) is left out. Empty when the path names no host bridge. A host
// bridge below another one (Intel VMD, Hyper-V) begins anew.
PciPath ParsePciPath(absl::string_view sysfs_path);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_PCI_PATH_H_
