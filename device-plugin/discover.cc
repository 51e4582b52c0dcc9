// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/discover.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "device-plugin/config/config.h"
#include "device-plugin/config/selector.h"
#include "fabric/affinity.h"
#include "fabric/gid_table.h"
#include "fabric/hca_role.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

constexpr char kGpuRow[] = "{:<13} {:<7} {:<5} {:<6} {}\n";
constexpr char kResourceRow[] = "{:<24} {:<6} {}\n";
constexpr char kRow[] = "{:<5} {:<12} {:<13} {:<5} {:<12} {:<6} {:<11} {:<8} {:<12} {:<9} {}\n";

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string OrDash(int number) { return number < 0 ? "-" : std::to_string(number); }

std::string HcaTable(const fabric::NodeInventory& inventory) {
  if (inventory.hcas.empty()) return "No RDMA device in /sys/class/infiniband.\n";
  std::string table = fmt::format(kRow, "RAIL", "DEVICE", "PCI", "NUMA", "NETDEV", "PORT", "LINK",
                                  "GBIT/S", "ROLE", "ADDRESS", "USE");
  std::string reasons;
  for (const fabric::Hca& hca : inventory.hcas) {
    const fabric::HcaPort* found = fabric::DataPort(hca);
    const fabric::HcaPort port = found == nullptr ? fabric::HcaPort{} : *found;
    table += fmt::format(
        kRow, OrDash(hca.rail), hca.name, OrDash(hca.pci_address), OrDash(hca.numa_node),
        OrDash(hca.netdev), found == nullptr ? "-" : std::to_string(port.port),
        OrDash(port.link_layer), port.rate_gbps, std::string(fabric::ToString(hca.role)),
        OrDash(std::string(fabric::ToString(hca.address))), hca.health.usable() ? "yes" : "no");
    for (const auto& [stage, text] : hca.health.troubles()) {
      reasons += fmt::format("{}: {}\n", hca.name, text);
    }
  }
  return reasons.empty() ? table : table + "\nNot usable:\n" + reasons;
}

std::string GpuTable(const fabric::NodeInventory& inventory) {
  if (inventory.gpus.empty()) return "";
  std::string table = "\n" + fmt::format(kGpuRow, "GPU", "VENDOR", "NUMA", "LEVEL", "NEAREST");
  for (const fabric::Gpu& gpu : inventory.gpus) {
    std::vector<std::string> names;
    std::string level;
    for (const size_t i : fabric::NearestHcas(inventory, gpu)) {
      const fabric::Hca& hca = inventory.hcas[i];
      level = std::string(fabric::ToString(fabric::LevelBetween(gpu, hca)));
      names.push_back(hca.name);
    }
    table += fmt::format(kGpuRow, gpu.pci_address, gpu.vendor, OrDash(gpu.numa_node), OrDash(level),
                         OrDash(absl::StrJoin(names, ", ")));
  }
  return table;
}

}  // namespace

std::string ToTable(const fabric::NodeInventory& inventory) {
  return HcaTable(inventory) + GpuTable(inventory);
}

std::string ToTable(const AgentConfig& config, const fabric::NodeInventory& inventory) {
  std::string table = fmt::format(kResourceRow, "RESOURCE", "SLOTS", "HCAS");
  const std::vector<std::vector<size_t>> shares = ShareOut(config, inventory.hcas);
  for (size_t r = 0; r < shares.size(); ++r) {
    const ResourceConfig& resource = config.resources[r];
    std::vector<std::string> names;
    for (const size_t i : shares[r]) names.push_back(inventory.hcas[i].name);
    const std::string miss = ClosestMiss(resource.selectors, inventory.hcas);
    const std::string name = resource.per_rail ? resource.name + "-<rail>" : resource.name;
    table += fmt::format(kResourceRow, name, resource.slots,
                         !names.empty() ? absl::StrJoin(names, ", ")
                         : miss.empty() ? "none: other resources select all matching HCAs"
                                        : "none: " + miss);
  }
  return table;
}

}  // namespace railhead::device_plugin
