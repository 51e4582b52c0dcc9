// SPDX-License-Identifier: Apache-2.0
#include "fabric/inventory.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/natural_order.h"
#include "fabric/pci_address.h"

namespace railhead::fabric {
namespace {

bool RailLess(const Hca& a, const Hca& b) {
  if (a.offered != b.offered) return a.offered;
  const std::optional<PciAddress> x = ParsePciAddress(a.pci_address);
  const std::optional<PciAddress> y = ParsePciAddress(b.pci_address);
  if (x.has_value() != y.has_value()) return x.has_value();
  if (x != y) return *x < *y;
  return NaturalLess(a.name, b.name);
}

}  // namespace

const HcaPort* DataPort(const Hca& hca) {
  for (const HcaPort& port : hca.ports) {
    if (port.state == "ACTIVE") return &port;
  }
  return hca.ports.empty() ? nullptr : &hca.ports.front();
}

void AssignRails(std::vector<Hca>& hcas) {
  std::sort(hcas.begin(), hcas.end(), RailLess);
  for (size_t i = 0; i < hcas.size(); ++i) {
    hcas[i].rail = hcas[i].offered ? static_cast<int>(i) : -1;
  }
}

NodeInventory KeepVanished(const NodeInventory& previous, NodeInventory current) {
  const size_t found = current.hcas.size();
  for (const Hca& old : previous.hcas) {
    const auto end = current.hcas.begin() + static_cast<std::ptrdiff_t>(found);
    const bool present = std::any_of(current.hcas.begin(), end, [&old](const Hca& hca) {
      return hca.name == old.name && hca.pci_address == old.pci_address;
    });
    if (present) continue;
    Hca gone = old;
    for (HcaPort& port : gone.ports) port.state = "UNKNOWN";
    gone.char_devices.clear();
    gone.usable = false;
    gone.reason =
        "the device has vanished from /sys/class/infiniband; check that its driver is loaded and "
        "that the card still answers on PCI";
    current.hcas.push_back(std::move(gone));
  }
  AssignRails(current.hcas);
  return current;
}

}  // namespace railhead::fabric
