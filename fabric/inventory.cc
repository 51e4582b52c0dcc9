// SPDX-License-Identifier: Apache-2.0
#include "fabric/inventory.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/pci_address.h"

namespace railhead::fabric {
namespace {

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The run of digits at `*at`, without leading zeros; moves `*at` past it.
std::string TakeNumber(const std::string& text, size_t* at) {
  const size_t begin = *at;
  while (*at < text.size() && IsDigit(text[*at])) ++*at;
  size_t first = begin;
  while (first + 1 < *at && text[first] == '0') ++first;
  return text.substr(first, *at - first);
}

// "mlx5_2" before "mlx5_10". A total order: names that count as equal are told apart as text.
bool NaturalLess(const std::string& a, const std::string& b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (IsDigit(a[i]) && IsDigit(b[j])) {
      const std::string x = TakeNumber(a, &i);
      const std::string y = TakeNumber(b, &j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  return a < b;
}

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
