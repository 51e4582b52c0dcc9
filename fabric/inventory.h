// SPDX-License-Identifier: Apache-2.0
//
// What one node offers: its RDMA devices (HCAs), their ports, which rail each of them is, and its
// GPUs.
//
// Plain values without behaviour of their own: a NodeInventory is read once (sysfs_reader.h), never
// changed afterwards, and compared with == to learn whether anything on the node has changed.
#ifndef RAILHEAD_FABRIC_INVENTORY_H_
#define RAILHEAD_FABRIC_INVENTORY_H_

#include <map>
#include <string>
#include <vector>

#include "fabric/gid_table.h"
#include "fabric/hca_role.h"
#include "fabric/pci_path.h"

namespace railhead::fabric {

// Rails are 0 to this: as many as node facts, fabric models and the solver's bit sets hold.
// Enforced where numbers come from: the node agent's configuration, its rail map, and numbering
// itself.
inline constexpr int kHighestRail = 63;

struct HcaPort {
  int port = 0;                 // as in sysfs, from 1
  std::string state;            // "ACTIVE", "DOWN", ...; "UNKNOWN" where sysfs could not be read
  std::string link_layer;       // "InfiniBand", "Ethernet", or "" when unknown
  double rate_gbps = 0;         // Gbit/s, one direction; 0 when unknown
  std::string phys_state = "";  // "LinkUp", "Polling", "Disabled", ...; "" when unknown

  bool operator==(const HcaPort&) const = default;
};

struct Hca {
  std::string name;                 // the RDMA device's name: "mlx5_0", "rxe0"
  std::string pci_address;          // "0000:18:00.0"; "" when no PCI function could be found
  int numa_node = -1;               // -1 when the machine does not say
  PciPath path;                     // empty when it is not known
  std::string vendor;               // PCI vendor id, four hex digits: "15b3"; "" when unknown
  std::string device;               // PCI device id, the same: "1021"
  std::string driver;               // of the PCI function: "mlx5_core"; "" when unknown
  std::string netdev;               // the network interface of the data port, "" when it has none
  std::vector<std::string> slaves;  // where that is a bond: its interfaces, which have the cables
  std::vector<HcaPort> ports;
  int rail = -1;                          // position on the node; see AssignRails
  bool offered = true;                    // false: it is no rail; see ChooseRails (hca_rules.h)
  std::vector<std::string> char_devices;  // as seen on the host: "/dev/infiniband/uverbs0"
  bool usable = false;
  std::string reason;  // why it is not usable, and what to do; "" when usable; see hca_rules.h

  // What the rules look at.
  HcaRole role = HcaRole::kPhysicalFunction;
  bool interface_here = false;                  // its interface is in the host's network namespace
  bool set_down = false;                        // its interface is set down: no cable is to blame
  bool orphan = false;                          // a virtual function whose PF is not on the PCI bus
  AddressKind address = AddressKind::kUnknown;  // by which the host can be reached at the data port
  AddressKind pod_address =
      AddressKind::kUnknown;   // the same of interfaces that are not the host's
  std::string host_gid;        // the host's first routable GID; "" where none is
  std::string device_trouble;  // what is wrong with its device nodes; "" when nothing is
  std::string withheld;       // why nobody may have it for now, whatever its state; "" when all may
  std::string shares_with;    // whose port it uses, where that one is the rail
  bool chosen = false;        // it is wanted as a rail in place of that one
  bool beyond_limit = false;  // there are kHighestRail + 1 rails before it
  // Its interface goes into the pod that gets it; the node agent's configuration says so.
  bool move_interface = false;

  // Which device of its PCI function: "" for the function's own, "sf88" for a
  // subfunction, "soft" for software on its interface.
  std::string part;
  std::string physical_function;  // of a virtual function: the address of its PF; else ""
  bool present = true;            // false: it was there, and is remembered
  // Names the HCA for as long as its node remembers it, whatever the kernel calls it; "" where
  // nothing remembers it.
  std::string id;

  bool operator==(const Hca&) const = default;
};

// The port that carries data: the first ACTIVE one, else the first. Null when there is no port.
// Points into `hca`.
const HcaPort* DataPort(const Hca& hca);

struct Gpu {
  std::string vendor;  // PCI vendor id, four hex digits: "10de"
  std::string pci_address;
  int numa_node = -1;  // -1 when the machine does not say
  PciPath path;        // empty when it is not known

  bool operator==(const Gpu&) const = default;
};

struct NodeInventory {
  std::vector<Hca> hcas;  // in rail order; those that are no rail last
  std::vector<Gpu> gpus;  // by PCI address
  bool rdma_cm = false;   // /dev/infiniband/rdma_cm exists
  // Device nodes of RDMA devices that are in another network namespace, by the devices' names.
  std::map<std::string, std::vector<std::string>> moved = {};

  bool operator==(const NodeInventory&) const = default;
};

// Sorts `hcas` by PCI address, then name (devices without an address last; numbers inside a name
// count as numbers), and numbers them 0, 1, ... as rails. What has been numbered before is
// remembered elsewhere (the node agent's rail map).
//
// An unusable HCA keeps its number: a rail is a position that repeats on every node, and a NIC
// whose port is down must not shift its neighbours onto other nodes' rails. What is not offered is
// no rail (-1), and neither is what would come after kHighestRail.
void AssignRails(std::vector<Hca>& hcas);

// Takes those whose number is beyond kHighestRail out of the rails.
void LimitRails(std::vector<Hca>& hcas);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_INVENTORY_H_
