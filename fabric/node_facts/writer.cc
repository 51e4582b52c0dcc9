// SPDX-License-Identifier: Apache-2.0
#include "fabric/node_facts/writer.h"

#include <nlohmann/json.hpp>
#include <string>

#include "fabric/affinity.h"
#include "fabric/gid_table.h"
#include "fabric/gpu_direct.h"
#include "fabric/hca_role.h"
#include "fabric/inventory.h"
#include "fabric/inventory_json.h"

namespace railhead::fabric {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson RailOf(const NodeInventory& inventory, const Hca& hca) {
  const HcaPort* port = DataPort(hca);
  OrderedJson rail = {{"rail", hca.rail},
                      {"device", hca.name},
                      {"port", port == nullptr ? 0 : port->port},
                      {"linkLayer", port == nullptr ? "" : port->link_layer},
                      {"rateGbps", port == nullptr ? 0 : port->rate_gbps},
                      {"pciAddress", hca.pci_address},
                      {"numaNode", hca.numa_node},
                      {"netdev", hca.netdev},
                      {"nearestGpus", NearestGpus(inventory, hca)},
                      {"usable", hca.health.usable()},
                      {"reason", hca.health.reason()},
                      {"role", std::string(ToString(hca.role))}};
  if (hca.address != AddressKind::kUnknown) {
    rail["address"] = std::string(ToString(hca.address));
  }
  if (hca.pod_address != AddressKind::kUnknown) {
    rail["podAddress"] = std::string(ToString(hca.pod_address));
  }
  if (!hca.health.usable()) rail["troubles"] = hca.health;
  if (!hca.slaves.empty()) rail["slaves"] = hca.slaves;
  return rail;
}

OrderedJson GpuDirectOf(const GpuDirect& direct) {
  return {{"way", std::string(ToString(WayOf(direct)))},
          {"kernel", direct.kernel},
          {"peermem", direct.peermem},
          {"dmabuf", direct.dmabuf},
          {"iommu", std::string(ToString(direct.iommu))},
          {"switchPath", std::string(ToString(direct.switch_path))},
          {"trouble", GpuDirectTrouble(direct)}};
}

}  // namespace

std::string WriteNodeFacts(const NodeInventory& inventory, const HostFacts& host) {
  OrderedJson rails = OrderedJson::array();
  for (const Hca& hca : inventory.hcas) {
    if (hca.offered) rails.push_back(RailOf(inventory, hca));
  }
  OrderedJson gpus = OrderedJson::array();
  for (const Gpu& gpu : inventory.gpus) {
    gpus.push_back(
        {{"vendor", gpu.vendor}, {"pciAddress", gpu.pci_address}, {"numaNode", gpu.numa_node}});
  }
  OrderedJson facts = {{"version", 1}, {"rails", rails}, {"gpus", gpus}};
  if (host.gpu_direct.has_value()) facts["gpuDirect"] = GpuDirectOf(*host.gpu_direct);
  // A number if there is a limit, otherwise null.
  facts["memlockBytes"] =
      host.memlock_bytes.has_value() ? OrderedJson(*host.memlock_bytes) : OrderedJson();
  if (!host.rdma_namespaces.empty()) facts["rdmaNamespaces"] = host.rdma_namespaces;
  return facts.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace railhead::fabric
