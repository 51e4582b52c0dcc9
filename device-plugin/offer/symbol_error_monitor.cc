// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/symbol_error_monitor.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/hca_health.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

void SymbolErrorMonitor::Mark(const std::map<std::string, uint64_t>& counts, TimePoint now,
                              fabric::NodeInventory& inventory) {
  std::set<std::string> ids;
  for (const fabric::Hca& hca : inventory.hcas) ids.insert(DeviceId(hca));
  std::erase_if(readings_, [&ids](const auto& reading) { return !ids.contains(reading.first); });
  for (fabric::Hca& hca : inventory.hcas) {
    hca.health.Set(fabric::Stage::kSymbolErrors, "");
    const std::string id = DeviceId(hca);
    const auto count = counts.find(id);
    const fabric::HcaPort* port = fabric::DataPort(hca);
    // Errors while a link trains are normal.
    const bool trains = port != nullptr && port->state != "ACTIVE";
    if (count == counts.end() || trains) {
      readings_.erase(id);
      continue;
    }
    auto& readings = readings_[id];
    // A decreased counter was reset with its driver.
    if (!readings.empty() && count->second < readings.back().second) readings.clear();
    readings.emplace_back(now, count->second);
    while (now - readings.front().first > limit_.within) readings.pop_front();
    if (count->second - readings.front().second < limit_.errors) continue;
    hca.health.Set(
        fabric::Stage::kSymbolErrors,
        absl::StrCat("its link is noisy (at least ", limit_.errors, " symbol errors within ",
                     std::chrono::duration_cast<std::chrono::seconds>(limit_.within).count(),
                     " s); check cable and transceiver"));
  }
}

}  // namespace railhead::device_plugin
