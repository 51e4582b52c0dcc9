// SPDX-License-Identifier: Apache-2.0
//
// Which HCAs a resource is made of, as its administrator describes them.
//
// Pure functions of values; safe to call from any thread.
#ifndef RAILHEAD_DEVICE_PLUGIN_CONFIG_SELECTOR_H_
#define RAILHEAD_DEVICE_PLUGIN_CONFIG_SELECTOR_H_

#include <string>
#include <vector>

#include "fabric/inventory.h"

namespace railhead::device_plugin {

// An HCA matches when every list that is not empty has an entry that matches, so a selector without
// entries matches every HCA. What is not known of an HCA, or what it does not have (an interface, a
// PCI address, a NUMA node, a rail), matches no entry, not even "*".
//
// Where wildcards are allowed, '*' stands for any text, also none, and '?' for one character.
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

// Whether the HCA has what the selector asks for. Does not ask whether it is offered.
bool Matches(const Selector& selector, const fabric::Hca& hca);

// Every reason why the HCA does not match, in the order of Selector's fields: "its vendor is 14e4,
// not 15b3; its rail is 3, not 0 or 1". "" when it matches.
std::string WhyNot(const Selector& selector, const fabric::Hca& hca);

// For the selectors of a resource that got no HCA: which offered HCA comes closest, and what keeps
// it from matching: "mlx5_3 (rail 3) comes closest, but its vendor is 14e4, not 15b3". The closest
// one fails the fewest fields of a selector; among equals the lowest rail wins, then the first
// selector. With several selectors the sentence says which of them it means, as "selectors[1]".
//
// "this node offers no HCA" when that is so. "" when an offered HCA matches one of the selectors,
// or when there are no selectors.
std::string ClosestMiss(const std::vector<Selector>& selectors,
                        const std::vector<fabric::Hca>& hcas);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CONFIG_SELECTOR_H_
