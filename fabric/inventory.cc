// SPDX-License-Identifier: Apache-2.0
#include "fabric/inventory.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
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
  LimitRails(hcas);
}

void LimitRails(std::vector<Hca>& hcas) {
  for (Hca& hca : hcas) {
    if (hca.rail <= kHighestRail) continue;
    hca.beyond_limit = true;
    hca.offered = false;
    hca.rail = -1;
  }
}

}  // namespace railhead::fabric
