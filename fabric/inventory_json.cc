// SPDX-License-Identifier: Apache-2.0
#include "fabric/inventory_json.h"

#include <nlohmann/json.hpp>
#include <string>

#include "fabric/inventory.h"

namespace railhead::fabric {

using Json = nlohmann::ordered_json;

std::string ToJson(const NodeInventory& inventory) {
  Json hcas = Json::array();
  for (const Hca& hca : inventory.hcas) {
    Json ports = Json::array();
    for (const HcaPort& port : hca.ports) {
      ports.push_back({{"port", port.port}, {"state", port.state}, {"rateGbps", port.rate_gbps}});
    }
    const HcaPort* data_port = DataPort(hca);
    hcas.push_back({{"name", hca.name},
                    {"pciAddress", hca.pci_address},
                    {"numaNode", hca.numa_node},
                    {"linkLayer", data_port == nullptr ? "" : data_port->link_layer},
                    {"netdev", hca.netdev},
                    {"ports", ports},
                    {"rail", hca.rail},
                    {"charDevices", hca.char_devices},
                    {"usable", hca.usable},
                    {"reason", hca.reason}});
  }
  const Json document = {{"hcas", hcas},
                         {"gpus", Json::array()},
                         {"affinity", Json::array()},
                         {"nearest", Json::array()}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace railhead::fabric
