// SPDX-License-Identifier: Apache-2.0
#include "fabric/inventory_json.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "fabric/affinity.h"
#include "fabric/hca_health.h"
#include "fabric/inventory.h"

namespace railhead::fabric {

using Json = nlohmann::ordered_json;

void to_json(Json& json, const Health& health) {
  json = Json::array();
  for (const auto& [stage, text] : health.troubles()) {
    json.push_back({{"stage", std::string(ToString(stage))}, {"text", text}});
  }
}

std::string ToJson(const NodeInventory& inventory) {
  Json hcas = Json::array();
  for (const Hca& hca : inventory.hcas) {
    Json ports = Json::array();
    for (const HcaPort& port : hca.ports) {
      ports.push_back({{"port", port.port}, {"state", port.state}, {"rateGbps", port.rate_gbps}});
    }
    const HcaPort* data_port = DataPort(hca);
    Json item = {{"name", hca.name},
                 {"pciAddress", hca.pci_address},
                 {"numaNode", hca.numa_node},
                 {"linkLayer", data_port == nullptr ? "" : data_port->link_layer},
                 {"netdev", hca.netdev},
                 {"ports", ports},
                 {"rail", hca.rail},
                 {"charDevices", hca.char_devices},
                 {"usable", hca.health.usable()},
                 {"reason", hca.health.reason()},
                 {"troubles", hca.health},
                 {"role", std::string(ToString(hca.role))},
                 {"address", std::string(ToString(hca.address))}};
    if (hca.pod_address != AddressKind::kUnknown) {
      item["podAddress"] = std::string(ToString(hca.pod_address));
    }
    hcas.push_back(std::move(item));
  }
  Json gpus = Json::array();
  Json affinity = Json::array();
  Json nearest = Json::array();
  for (const Gpu& gpu : inventory.gpus) {
    gpus.push_back(
        {{"vendor", gpu.vendor}, {"pciAddress", gpu.pci_address}, {"numaNode", gpu.numa_node}});
    for (const Hca& hca : inventory.hcas) {
      if (!hca.offered) continue;
      affinity.push_back({{"gpu", gpu.pci_address},
                          {"hca", hca.name},
                          {"level", std::string(ToString(LevelBetween(gpu, hca)))}});
    }
    Json names = Json::array();
    for (const size_t i : NearestHcas(inventory, gpu)) names.push_back(inventory.hcas[i].name);
    nearest.push_back({{"gpu", gpu.pci_address}, {"hcas", names}});
  }
  const Json document = {
      {"hcas", hcas}, {"gpus", gpus}, {"affinity", affinity}, {"nearest", nearest}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace railhead::fabric
