// SPDX-License-Identifier: Apache-2.0
//
// How near a GPU and an HCA are, in NCCL's levels, and which HCAs are nearest to a GPU. Pure.
#ifndef RAILHEAD_FABRIC_AFFINITY_H_
#define RAILHEAD_FABRIC_AFFINITY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fabric/inventory.h"
#include "fabric/pci_path.h"

namespace railhead::fabric {

// From the nearest on, so that < means nearer. The names are those of NCCL and nvidia-smi.
enum class Level {
  kPix,   // at most one PCIe bridge between them; a switch counts as one
  kPxb,   // several bridges, but not the host bridge
  kPhb,   // the same host bridge
  kNode,  // the same NUMA node, different host bridges (or it is not known which)
  kSys,   // different NUMA nodes, or nothing is known of one of them
};

// "PIX", "PXB", "PHB", "NODE" or "SYS".
absl::string_view ToString(Level level);

// Where a device hangs. The NUMA node is -1 where the machine does not say. Two such devices on PCI
// are taken to share the only node there is; one with and one without a node are not.
struct Position {
  const PciPath& path;
  int numa_node;
};

// Symmetric.
Level LevelBetween(const Position& a, const Position& b);
Level LevelBetween(const Gpu& gpu, const Hca& hca);

// The places in `inventory.hcas` of all usable HCAs at the best level that a usable one has to
// `gpu`, in rail order. Empty when no HCA is usable.
std::vector<size_t> NearestHcas(const NodeInventory& inventory, const Gpu& gpu);

// The other way round: PCI addresses of the GPUs to which this HCA is among the nearest, in the
// inventory's order.
std::vector<std::string> NearestGpus(const NodeInventory& inventory, const Hca& hca);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_AFFINITY_H_
