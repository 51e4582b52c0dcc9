// SPDX-License-Identifier: Apache-2.0
//
// Distance between a GPU and an HCA in NCCL's levels, and the nearest HCAs of a GPU. Pure.
#ifndef RAILHEAD_FABRIC_AFFINITY_H_
#define RAILHEAD_FABRIC_AFFINITY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fabric/inventory.h"
#include "fabric/pci_path.h"

namespace railhead::fabric {

// Nearest first, so that < means nearer. Names are those of NCCL and nvidia-smi.
enum class Level {
  kPix,   // at most one PCIe bridge between them; a switch counts as one
  kPxb,   // several bridges, but not the host bridge
  kPhb,   // the same host bridge
  kNode,  // the same NUMA node, different (or unknown) host bridges
  kSys,   // different NUMA nodes, or one is unknown
};

// Returns "PIX", "PXB", "PHB", "NODE" or "SYS".
absl::string_view ToString(Level level);

// Position of a device. numa_node is -1 if unknown: two such PCI devices are assumed to share the
// only node; one with and one without a node do not.
struct Position {
  const PciPath& path;
  int numa_node;
};

// Symmetric.
Level LevelBetween(const Position& a, const Position& b);
Level LevelBetween(const Gpu& gpu, const Hca& hca);

// Returns indices in `inventory.hcas` of all usable HCAs at the best level to `gpu`, in rail order.
// Empty if no HCA is usable.
std::vector<size_t> NearestHcas(const NodeInventory& inventory, const Gpu& gpu);

// Returns PCI addresses of the GPUs to which this HCA is among the nearest, in inventory order.
std::vector<std::string> NearestGpus(const NodeInventory& inventory, const Hca& hca);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_AFFINITY_H_
