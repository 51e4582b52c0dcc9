// SPDX-License-Identifier: Apache-2.0
//
// Selectors: the administrator's description of a resource's HCAs.
//
// Pure functions, safe on any thread.
#ifndef RAILHEAD_DEVICE_PLUGIN_CONFIG_SELECTOR_H_
#define RAILHEAD_DEVICE_PLUGIN_CONFIG_SELECTOR_H_

#include <string>
#include <vector>

#include "fabric/inventory.h"

namespace railhead::device_plugin {

// An HCA matches if every non-empty list has an entry that matches; so an empty selector matches
// every HCA. A property that the HCA lacks or that is unknown (interface, PCI address, NUMA node,
// rail) matches no entry, not even "*".
//
// In fields with wildcards, '*' matches any text, including none, and '?' one character.
struct Selector {
  std::vector<std::string> names = {};       // of the RDMA device: "mlx5_*"; wildcards
  std::vector<std::string> vendors = {};     // PCI vendor ids, as in Hca: "15b3"
  std::vector<std::string> devices = {};     // PCI device ids, as in Hca: "1021"
  std::vector<std::string> drivers = {};     // of the PCI function: "mlx5_core"
  std::vector<std::string> interfaces = {};  // the data port's network interface: "eth*"; wildcards
  std::vector<std::string> link_layers = {};    // of the data port: "InfiniBand" or "Ethernet"
  std::vector<std::string> pci_addresses = {};  // "0000:18:00.0", "0000:18:*"; wildcards
  std::vector<int> rails = {};
  std::vector<int> numa_nodes = {};
  std::vector<std::string> roles = {};  // as fabric::ToString(HcaRole): "pf", "vf"

  bool operator==(const Selector&) const = default;
};

// Returns true if the HCA matches, whether or not it is offered.
bool Matches(const Selector& selector, const fabric::Hca& hca);

// Returns every reason why the HCA does not match, in the order of Selector's fields: "its vendor
// is 14e4, not 15b3; its rail is 3, not 0 or 1". "" if it matches.
std::string WhyNot(const Selector& selector, const fabric::Hca& hca);

// Explains why a resource got no HCA: the offered HCA that comes closest, and what keeps it from
// matching: "mlx5_3 (rail 3) comes closest, but its vendor is 14e4, not 15b3". The closest HCA
// fails the fewest fields of a selector; ties go to the lowest rail, then to the first selector.
// With several selectors the text names the one, as "selectors[1]".
//
// Returns "this node offers no HCA" if that is the case, and "" if an offered HCA matches, or
// without selectors.
std::string ClosestMiss(const std::vector<Selector>& selectors,
                        const std::vector<fabric::Hca>& hcas);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CONFIG_SELECTOR_H_
