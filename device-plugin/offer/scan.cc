// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/scan.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "fabric/gpu_direct.h"
#include "fabric/inventory.h"
#include "fabric/port_counters.h"
#include "fabric/root_files.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {
namespace {

std::string RdmaNamespaces(const fabric::RootFiles& files) {
  const std::string shared =
      files.ReadAttribute("/sys/module/ib_core/parameters/netns_mode").value_or("");
  if (shared.empty()) return "";
  return shared == "Y" || shared == "1" ? "shared" : "exclusive";
}

void ReadCounters(const fabric::RootFiles& files,
                  const std::function<void(const std::string&)>& reading, Scan& scan) {
  for (const fabric::Hca& hca : scan.inventory.hcas) {
    const fabric::HcaPort* port = fabric::DataPort(hca);
    if (port == nullptr) continue;
    reading(hca.name);
    const auto count = [&](fabric::PortCounter counter, std::map<std::string, uint64_t>& counts) {
      const std::optional<uint64_t> value =
          fabric::ReadPortCounter(files, hca.name, port->port, counter);
      if (value.has_value()) counts[hca.name] = *value;
    };
    count(&fabric::PortCounters::link_downed, scan.link_downs);
    count(&fabric::PortCounters::symbol_errors, scan.symbol_errors);
  }
}

}  // namespace

absl::StatusOr<Scan> ReadScan(const ScanWish& wish, fabric::KnownVpd& known,
                              const std::function<void(const std::string&)>& reading) {
  absl::StatusOr<fabric::NodeInventory> inventory =
      fabric::ReadInventory(wish.root, wish.gpu_vendors, &known, reading);
  if (!inventory.ok()) return inventory.status();
  Scan scan;
  scan.inventory = *std::move(inventory);
  const absl::StatusOr<fabric::RootFiles> files = fabric::RootFiles::Open(wish.root);
  if (!files.ok()) return files.status();
  ReadCounters(*files, reading, scan);
  reading("");
  scan.rdma_namespaces = RdmaNamespaces(*files);
  if (scan.inventory.gpus.empty()) return scan;
  const absl::StatusOr<fabric::RootFiles> proc = fabric::RootFiles::Open(wish.proc_root);
  if (proc.ok()) scan.gpu_direct = fabric::ReadGpuDirect(*files, *proc, scan.inventory);
  return scan;
}

}  // namespace railhead::device_plugin
