// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/offer_health.h"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "device-plugin/config/config.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/holdings/holdings.h"
#include "fabric/hca_health.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

std::set<std::string> JudgeOffers(const AgentConfig& config, const std::set<std::string>& held,
                                  fabric::NodeInventory& inventory) {
  std::vector<fabric::Hca>& hcas = inventory.hcas;
  std::vector<fabric::PodNetwork> networks(hcas.size(), fabric::PodNetwork::kUnknown);
  const std::vector<std::vector<size_t>> shares = ShareOut(config, hcas);
  for (size_t r = 0; r < shares.size(); ++r) {
    for (const size_t i : shares[r]) {
      networks[i] = config.resources[r].network;
      hcas[i].move_interface = config.resources[r].move_interfaces;
    }
  }
  std::set<std::string> away;
  for (size_t i = 0; i < hcas.size(); ++i) {
    fabric::Hca& hca = hcas[i];
    fabric::Judge(hca, networks[i]);
    if (networks[i] != fabric::PodNetwork::kMoved) continue;
    if (!hca.present || !hca.interface_here || hca.set_down) away.insert(DeviceId(hca));
    if (hca.present || !Holds(held, hca)) continue;
    const auto nodes = inventory.moved.find(hca.name);
    if (nodes == inventory.moved.end()) continue;
    hca.char_devices = nodes->second;
    hca.health.Set(fabric::Stage::kMissing, "");
  }
  fabric::JudgeTogether(hcas, networks);
  return away;
}

}  // namespace railhead::device_plugin
