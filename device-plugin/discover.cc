// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/discover.h"

#include <fmt/format.h>

#include <string>

#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

constexpr char kRow[] = "{:<5} {:<12} {:<13} {:<5} {:<12} {:<6} {:<11} {:<8} {}\n";

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

std::string ToTable(const fabric::NodeInventory& inventory) {
  if (inventory.hcas.empty()) return "No RDMA device in /sys/class/infiniband.\n";
  std::string table =
      fmt::format(kRow, "RAIL", "DEVICE", "PCI", "NUMA", "NETDEV", "PORT", "LINK", "GBIT/S", "USE");
  std::string reasons;
  for (const fabric::Hca& hca : inventory.hcas) {
    const fabric::HcaPort* found = fabric::DataPort(hca);
    const fabric::HcaPort port = found == nullptr ? fabric::HcaPort{} : *found;
    table += fmt::format(kRow, hca.rail, hca.name, OrDash(hca.pci_address),
                         hca.numa_node < 0 ? "-" : std::to_string(hca.numa_node),
                         OrDash(hca.netdev), found == nullptr ? "-" : std::to_string(port.port),
                         OrDash(port.link_layer), port.rate_gbps, hca.usable ? "yes" : "no");
    if (!hca.usable) reasons += fmt::format("{}: {}\n", hca.name, hca.reason);
  }
  return reasons.empty() ? table : table + "\nNot usable:\n" + reasons;
}

}  // namespace railhead::device_plugin
