// SPDX-License-Identifier: Apache-2.0
//
// Well-known machines as host trees: their PCIe topology, NUMA nodes, GPUs and NICs.
#ifndef RAILHEAD_FABRIC_TESTING_MACHINES_H_
#define RAILHEAD_FABRIC_TESTING_MACHINES_H_

#include <ostream>
#include <string>
#include <vector>

#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric::testing {

struct PciDevice {
  std::string path;  // below /sys/devices: "pci0000:00/0000:00:01.0/0000:01:00.0"
  int numa_node = -1;
  std::string vendor;     // "0x10de"
  std::string pci_class;  // "0x030200"
  std::string hca = "";   // the RDMA device on it, if any
  bool is_gpu = false;    // what discovery should say
};

struct Machine {
  std::string name;
  std::vector<PciDevice> devices;

  // For the names of tests.
  friend void PrintTo(const Machine& machine, std::ostream* out) { *out << machine.name; }
};

// DGX A100, DGX H100, an HGX board whose switches share host bridges, a GB200 tray, a machine with
// eight MI300X, and a virtual machine with a flat bus. Each with displays, bridges and audio
// functions that are no GPUs.
std::vector<Machine> Machines();

// The machine's /sys and /dev, bridges included.
void Build(const Machine& machine, const SysfsTree& tree);

}  // namespace railhead::fabric::testing

#endif  // RAILHEAD_FABRIC_TESTING_MACHINES_H_
