// SPDX-License-Identifier: Apache-2.0
//
// Inventory of one node: its RDMA devices (HCAs) with ports and rails, and its GPUs.
//
// Plain values: a NodeInventory is read once (sysfs_reader.h), then copied and compared, never
// changed while shared.
#ifndef RAILHEAD_FABRIC_INVENTORY_H_
#define RAILHEAD_FABRIC_INVENTORY_H_

#include <map>
#include <string>
#include <vector>

#include "fabric/gid_table.h"
#include "fabric/hca_health.h"
#include "fabric/hca_role.h"
#include "fabric/pci_path.h"
#include "fabric/rail_limit.h"

namespace railhead::fabric {

struct HcaPort {
  int port = 0;                 // as in sysfs, from 1
  std::string state;            // "ACTIVE", "DOWN", ...; "UNKNOWN" if unreadable
  std::string link_layer;       // "InfiniBand", "Ethernet", or "" when unknown
  double rate_gbps = 0;         // Gbit/s, one direction; 0 when unknown
  std::string phys_state = "";  // "LinkUp", "Polling", "Disabled", ...; "" when unknown

  bool operator==(const HcaPort&) const = default;
};

struct Hca {
  std::string name;         // the RDMA device's name: "mlx5_0", "rxe0"
  std::string pci_address;  // "0000:18:00.0"; "" if there is no PCI function
  int numa_node = -1;       // -1: unknown
  PciPath path;             // empty: unknown
  std::string vendor;       // PCI vendor id, four hex digits: "15b3"; "" when unknown
  std::string device;       // PCI device id: "1021"
  std::string driver;       // of the PCI function: "mlx5_core"; "" when unknown
  std::string netdev;       // network interface of the data port; "" if none
  // interfaces of `netdev`, if that is a bond; they have the cables
  std::vector<std::string> slaves;
  std::vector<HcaPort> ports;
  int rail = -1;                          // position on the node; see AssignRails
  bool offered = true;                    // false: not a rail; see ChooseRails (hca_rules.h)
  std::vector<std::string> char_devices;  // as seen on the host: "/dev/infiniband/uverbs0"
  Health health;

  // Inputs of the rules.
  HcaRole role = HcaRole::kPhysicalFunction;
  bool interface_here = false;                  // its interface is in the host's network namespace
  bool set_down = false;                        // its interface is administratively down
  bool orphan = false;                          // a virtual function whose PF is not on the PCI bus
  AddressKind address = AddressKind::kUnknown;  // address of the host at the data port
  AddressKind pod_address =
      AddressKind::kUnknown;   // address of interfaces outside the host's namespace
  std::string host_gid;        // the host's first routable GID; "" if none
  std::string device_trouble;  // fault of its device nodes; "" if none
  std::string shares_with;     // the HCA whose port it shares and that is the rail
  bool chosen = false;         // to be the rail instead of that one
  bool beyond_limit = false;   // there are kHighestRail + 1 rails before it
  // Its interface moves into the pod that gets it, by the node agent's configuration.
  bool move_interface = false;

  // Device within its PCI function: "" for the function's own, "sf88" for a subfunction, "soft" for
  // software on its interface.
  std::string part;
  std::string physical_function;  // address of the PF of a virtual function; else ""
  bool present = true;            // false: missing now, but remembered
  // Stable identity of the HCA in the node's rail map, independent of kernel names; "" if not in a
  // map.
  std::string id;

  bool operator==(const Hca&) const = default;
};

// Returns the data port: the first ACTIVE one, else the first. Null without ports. Points into
// `hca`.
const HcaPort* DataPort(const Hca& hca);

struct Gpu {
  std::string vendor;  // PCI vendor id, four hex digits: "10de"
  std::string pci_address;
  int numa_node = -1;  // -1: unknown
  PciPath path;        // empty: unknown

  bool operator==(const Gpu&) const = default;
};

struct NodeInventory {
  std::vector<Hca> hcas;  // in rail order; others last
  std::vector<Gpu> gpus;  // by PCI address
  bool rdma_cm = false;   // /dev/infiniband/rdma_cm exists
  // Device nodes of RDMA devices in other network namespaces, by device name.
  std::map<std::string, std::vector<std::string>> moved = {};

  bool operator==(const NodeInventory&) const = default;
};

// Sorts `hcas` by PCI address, then name in natural order (devices without an address last), and
// numbers them 0, 1, ... as rails. Earlier numbers are kept elsewhere (the node agent's rail map).
//
// An unusable HCA keeps its number: a rail is a position that repeats on every node, and a NIC that
// is down must not shift its neighbours to other nodes' rails. HCAs that are not offered, or beyond
// kHighestRail, are not rails (-1).
void AssignRails(std::vector<Hca>& hcas);

// Removes HCAs beyond kHighestRail from the rails.
void LimitRails(std::vector<Hca>& hcas);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_INVENTORY_H_
