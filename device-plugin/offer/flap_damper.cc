// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/flap_damper.h"

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
namespace {

int64_t Seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

void FlapDamper::Settle(const std::map<std::string, uint64_t>& link_downs,
                        const std::set<std::string>& away, TimePoint now,
                        fabric::NodeInventory& inventory) {
  std::set<std::string> ids;
  for (const fabric::Hca& hca : inventory.hcas) ids.insert(DeviceId(hca));
  std::erase_if(histories_, [&ids](const auto& history) { return !ids.contains(history.first); });
  for (fabric::Hca& hca : inventory.hcas) {
    const auto [place, is_new] = histories_.try_emplace(DeviceId(hca));
    History& history = place->second;
    bool lost_link = false;
    if (away.contains(DeviceId(hca))) {
      history.has_link_downs = false;
    } else if (const auto downs = link_downs.find(DeviceId(hca)); downs != link_downs.end()) {
      // A decreased counter was reset with its driver.
      lost_link = history.has_link_downs && downs->second > history.link_downs;
      history.link_downs = downs->second;
      history.has_link_downs = true;
    }
    while (!history.troubles.empty() && now - history.troubles.front() > timing_.memory) {
      history.troubles.pop_front();
    }
    hca.health.Set(fabric::Stage::kFlapDamping, "");
    const bool well = hca.health.usable();
    const bool bad = !well || lost_link;
    if (bad) {
      history.last_bad = now;
      // A link that goes down while the HCA is already failed is the same failure.
      if (history.well && !is_new) history.troubles.push_back(now);
      history.offered = false;
    }
    history.well = well;
    if (history.offered) continue;
    const bool flaps = static_cast<int>(history.troubles.size()) >= timing_.flaps;
    const Duration window = flaps ? timing_.recover_flapping : timing_.recover;
    if (well && now - history.last_bad >= window) {
      history.offered = true;
      continue;
    }
    // The text contains no changing numbers, as each change is a message to kubelet.
    const std::string again =
        absl::StrCat("offered again after ", Seconds(window), " s without failure");
    hca.health.Set(fabric::Stage::kFlapDamping,
                   flaps ? absl::StrCat("its link flaps (at least ", timing_.flaps, " failures in ",
                                        Seconds(timing_.memory), " s); ", again,
                                        "; check cable, transceiver and switch port")
                   : well ? absl::StrCat("recovered; ", again)
                          : "");
  }
}

}  // namespace railhead::device_plugin
