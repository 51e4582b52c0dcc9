// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/allocation.h"

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/affinity.h"
#include "fabric/inventory.h"
#include "fabric/nccl_ib_hca.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {
namespace {

std::string KnownIds(const DeviceSnapshot& snapshot) {
  return absl::StrJoin(snapshot.devices, ", ", [](std::string* out, const Device& device) {
    absl::StrAppend(out, device.id);
  });
}

absl::Status CheckIds(const DeviceSnapshot& snapshot, const std::vector<std::string>& ids) {
  if (ids.empty()) return absl::InvalidArgumentError("Allocate: a container requests no device");
  std::set<std::string> seen;
  for (const std::string& id : ids) {
    if (!seen.insert(id).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("Allocate: device ", id, " is requested twice"));
    }
    const Device* device = snapshot.Find(id);
    if (device == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("Allocate: no device ", id, " on this node; it has ", KnownIds(snapshot)));
    }
    if (!device->hca.health.usable()) {
      return absl::FailedPreconditionError(
          absl::StrCat("Allocate: device ", id, " cannot be used: ", device->hca.health.Text()));
    }
  }
  return absl::OkStatus();
}

// The pod may already use the host's name, such as eth0.
std::string NameInPod(const fabric::Hca& hca) { return absl::StrCat("rail", hca.rail); }

fabric::PodRail RailOf(const fabric::NodeInventory& inventory, const fabric::Hca& hca) {
  fabric::PodRail rail;
  rail.rail = hca.rail;
  rail.device = hca.name;
  if (const fabric::HcaPort* port = fabric::DataPort(hca); port != nullptr) {
    rail.port = port->port;
    rail.link_layer = port->link_layer;
    rail.rate_gbps = port->rate_gbps;
  }
  rail.pci_address = hca.pci_address;
  rail.numa_node = hca.numa_node;
  rail.netdev = hca.move_interface ? NameInPod(hca) : hca.netdev;
  rail.char_devices = hca.char_devices;
  rail.nearest_gpus = fabric::NearestGpus(inventory, hca);
  return rail;
}

// Describes HCAs, which must be in rail order.
Allocation Describe(const fabric::NodeInventory& inventory, const std::string& node,
                    const std::vector<const fabric::Hca*>& hcas) {
  Allocation allocation;
  allocation.rails.node = node;
  for (const fabric::Hca* hca : hcas) {
    const fabric::PodRail rail = RailOf(inventory, *hca);
    allocation.char_devices.insert(allocation.char_devices.end(), rail.char_devices.begin(),
                                   rail.char_devices.end());
    allocation.rails.rails.push_back(rail);
    if (hca->move_interface && hca->interface_here) {
      allocation.interfaces.push_back({hca->netdev, NameInPod(*hca)});
    }
  }
  if (inventory.rdma_cm) {
    allocation.char_devices.push_back("/dev/infiniband/rdma_cm");
  }
  allocation.nccl_ib_hca = fabric::NcclIbHca(allocation.rails.rails);
  return allocation;
}

}  // namespace

absl::StatusOr<Allocation> PlanAllocation(const DeviceSnapshot& snapshot, const std::string& node,
                                          const std::vector<std::string>& ids) {
  if (absl::Status status = CheckIds(snapshot, ids); !status.ok()) return status;
  const std::set<std::string> wanted(ids.begin(), ids.end());
  std::vector<const fabric::Hca*> hcas;
  std::set<std::string> given;
  for (const Device& device : snapshot.devices) {  // in rail order; kubelet's order is random
    if (!wanted.contains(device.id)) continue;
    // Two slots of one HCA are one HCA.
    if (device.all.empty() && given.insert(DeviceId(device.hca)).second) {
      hcas.push_back(&device.hca);
    }
    for (const fabric::Hca& hca : device.all) {
      if (given.insert(DeviceId(hca)).second) hcas.push_back(&hca);
    }
  }
  return Describe(snapshot.inventory, node, hcas);
}

absl::StatusOr<Allocation> PlanForHcas(const DeviceSnapshot& snapshot, const std::string& node,
                                       const std::set<std::string>& hcas) {
  std::set<const fabric::Hca*> named;
  for (const std::string& id : hcas) {
    const fabric::Hca* hca = snapshot.FindHca(id);
    if (hca == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat(id, " is no longer on this node; check that its driver is loaded"));
    }
    if (hca->char_devices.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(id, " has no device node: ", hca->health.Text()));
    }
    named.insert(hca);
  }
  std::vector<const fabric::Hca*> found;
  for (const fabric::Hca& hca : snapshot.inventory.hcas) {
    if (named.contains(&hca)) found.push_back(&hca);
  }
  return Describe(snapshot.inventory, node, found);
}

}  // namespace railhead::device_plugin
