// SPDX-License-Identifier: Apache-2.0
//
// Path of a PCI function from its host bridge.
#ifndef RAILHEAD_FABRIC_PCI_PATH_H_
#define RAILHEAD_FABRIC_PCI_PATH_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

struct PciPath {
  std::string host_bridge;             // "pci0000:00"; "" if unknown
  std::vector<std::string> functions;  // bridges from the outermost, then the function itself

  bool operator==(const PciPath&) const = default;
};

// Parses a path below /sys/devices, or the text of a link to one, such as
// "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0". Ignores everything below the last PCI
// function (a virtio device, a network interface). Empty if the path contains no host bridge. A
// nested host bridge (Intel VMD, Hyper-V) starts a new path.
PciPath ParsePciPath(absl::string_view sysfs_path);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_PCI_PATH_H_
