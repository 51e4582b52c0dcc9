// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/scan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "fabric/gpu_direct.h"
#include "fabric/gpu_uuids.h"
#include "fabric/hca_health.h"
#include "fabric/hca_netdev.h"
#include "fabric/inventory.h"
#include "fabric/port_counters.h"
#include "fabric/root_files.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {
namespace {

constexpr char kNvidia[] = "10de";

std::string RdmaNamespaces(const fabric::RootFiles& files) {
  const std::string shared =
      files.ReadAttribute("/sys/module/ib_core/parameters/netns_mode").value_or("");
  if (shared.empty()) return "";
  return shared == "Y" || shared == "1" ? "shared" : "exclusive";
}

// The interface of an HCA that moves into a pod goes down, or away, before its port counts the lost
// link. If it has counted one since the last scan, the interface as read before is out of date.
void LookAgainAtInterface(const fabric::RootFiles& files, const ScanWish& wish, const Scan& scan,
                          fabric::Hca& hca) {
  if (wish.last == nullptr || !scan.link_downs.contains(hca.name)) return;
  const auto before = wish.last->link_downs.find(hca.name);
  if (before == wish.last->link_downs.end()) return;
  if (before->second == scan.link_downs.at(hca.name) || !hca.interface_here) return;
  hca.interface_here = files.IsDirectory(absl::StrCat("/sys/class/net/", hca.netdev));
  hca.set_down = hca.set_down || fabric::IsSetDown(files, hca.netdev);
}

void ReadCounters(const ScanWish& wish, const fabric::RootFiles& files,
                  const std::function<void(const std::string&)>& reading, Scan& scan) {
  for (fabric::Hca& hca : scan.inventory.hcas) {
    const fabric::HcaPort* port = fabric::DataPort(hca);
    if (port == nullptr || hca.health.Has(fabric::Stage::kHang)) continue;
    reading(hca.name);
    const auto count = [&](fabric::PortCounter counter, std::map<std::string, uint64_t>& counts) {
      const std::optional<uint64_t> value =
          fabric::ReadPortCounter(files, hca.name, port->port, counter);
      if (value.has_value()) counts[hca.name] = *value;
    };
    count(&fabric::PortCounters::link_downed, scan.link_downs);
    count(&fabric::PortCounters::symbol_errors, scan.symbol_errors);
    LookAgainAtInterface(files, wish, scan, hca);
  }
}

// Returns the HCAs that must not be read, as they were read last.
std::map<std::string, fabric::Hca> HangingHcas(const ScanWish& wish) {
  std::map<std::string, fabric::Hca> hanging;
  for (const std::string& name : wish.hanging) hanging[name];
  if (wish.last == nullptr) return hanging;
  for (const fabric::Hca& hca : wish.last->inventory.hcas) {
    if (const auto found = hanging.find(hca.name); found != hanging.end()) found->second = hca;
  }
  return hanging;
}

// Returns whether the known UUIDs are those of these GPUs; the UUID of a GPU does not change.
bool KnowsUuids(const Scan& last, const fabric::NodeInventory& inventory) {
  if (last.inventory.gpus != inventory.gpus) return false;
  const auto nvidia = std::count_if(inventory.gpus.begin(), inventory.gpus.end(),
                                    [](const fabric::Gpu& gpu) { return gpu.vendor == kNvidia; });
  return static_cast<size_t>(nvidia) == last.gpu_uuids.size();
}

void ReadGpuFacts(const ScanWish& wish, const fabric::RootFiles& files,
                  const std::function<void(const std::string&)>& reading, Scan& scan) {
  if (scan.inventory.gpus.empty()) return;
  if (wish.last != nullptr) {
    scan.gpu_direct = wish.last->gpu_direct;
    scan.gpu_uuids = wish.last->gpu_uuids;
  }
  if (wish.hanging.contains(kGpuDriver)) return;
  reading(kGpuDriver);
  const absl::StatusOr<fabric::RootFiles> proc = fabric::RootFiles::Open(wish.proc_root);
  if (proc.ok()) {
    scan.gpu_direct = fabric::ReadGpuDirect(files, *proc, scan.inventory);
    if (wish.last == nullptr || !KnowsUuids(*wish.last, scan.inventory)) {
      scan.gpu_uuids = fabric::ReadGpuUuids(*proc);
    }
  }
  reading("");
}

}  // namespace

absl::StatusOr<Scan> ReadScan(const ScanWish& wish, fabric::KnownVpd& known,
                              const std::function<void(const std::string&)>& reading) {
  absl::StatusOr<fabric::NodeInventory> inventory =
      fabric::ReadInventory(wish.root, wish.gpu_vendors, &known, reading, HangingHcas(wish));
  if (!inventory.ok()) return inventory.status();
  Scan scan;
  scan.inventory = *std::move(inventory);
  const absl::StatusOr<fabric::RootFiles> files = fabric::RootFiles::Open(wish.root);
  if (!files.ok()) return files.status();
  ReadCounters(wish, *files, reading, scan);
  reading("");
  scan.rdma_namespaces = RdmaNamespaces(*files);
  ReadGpuFacts(wish, *files, reading, scan);
  return scan;
}

}  // namespace railhead::device_plugin
