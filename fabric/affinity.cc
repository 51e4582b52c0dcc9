// SPDX-License-Identifier: Apache-2.0
#include "fabric/affinity.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fabric/inventory.h"
#include "fabric/pci_path.h"

namespace railhead::fabric {
namespace {

// Returns the index of the bridge at a depth below the host bridge: the root port is first (0);
// then upstream and downstream ports of switches alternate, and each pair is one bridge.
size_t BridgeAt(size_t depth) { return depth / 2; }

// Both are below the same host bridge.
Level LevelBelowBridge(const PciPath& a, const PciPath& b) {
  // The last element of each path is the function itself, not a bridge.
  const size_t above_a = a.functions.size() - 1;
  const size_t above_b = b.functions.size() - 1;
  size_t shared = 0;
  while (shared < std::min(above_a, above_b) && a.functions[shared] == b.functions[shared]) {
    ++shared;
  }
  if (shared == 0) return Level::kPhb;
  const bool one_bridge =
      BridgeAt(above_a) == BridgeAt(shared) && BridgeAt(above_b) == BridgeAt(shared);
  return one_bridge ? Level::kPix : Level::kPxb;
}

}  // namespace

absl::string_view ToString(Level level) {
  switch (level) {
    case Level::kPix:
      return "PIX";
    case Level::kPxb:
      return "PXB";
    case Level::kPhb:
      return "PHB";
    case Level::kNode:
      return "NODE";
    case Level::kSys:
      break;
  }
  return "SYS";
}

Level LevelBetween(const Position& a, const Position& b) {
  const bool known = !a.path.functions.empty() && !b.path.functions.empty();
  if (known && a.path.host_bridge == b.path.host_bridge) return LevelBelowBridge(a.path, b.path);
  const bool same_node = a.numa_node == b.numa_node && (known || a.numa_node >= 0);
  return same_node ? Level::kNode : Level::kSys;
}

Level LevelBetween(const Gpu& gpu, const Hca& hca) {
  return LevelBetween(Position{gpu.path, gpu.numa_node}, Position{hca.path, hca.numa_node});
}

std::vector<size_t> NearestHcas(const NodeInventory& inventory, const Gpu& gpu) {
  std::vector<size_t> nearest;
  Level best = Level::kSys;
  for (size_t i = 0; i < inventory.hcas.size(); ++i) {
    if (!inventory.hcas[i].health.usable()) continue;
    const Level level = LevelBetween(gpu, inventory.hcas[i]);
    if (level < best) {
      nearest.clear();
      best = level;
    }
    if (level == best) nearest.push_back(i);
  }
  return nearest;
}

std::vector<std::string> NearestGpus(const NodeInventory& inventory, const Hca& hca) {
  std::vector<std::string> gpus;
  for (const Gpu& gpu : inventory.gpus) {
    for (const size_t i : NearestHcas(inventory, gpu)) {
      if (inventory.hcas[i].name == hca.name) gpus.push_back(gpu.pci_address);
    }
  }
  return gpus;
}

}  // namespace railhead::fabric
