// SPDX-License-Identifier: Apache-2.0
//
// Roles of RDMA devices: what kind of device each entry of /sys/class/infiniband is.
//
// One table: for each role its name, the test that recognizes it, and whether such a device can be
// a rail. The first test that passes wins. A function of values that discovery has read; no I/O.
#ifndef RAILHEAD_FABRIC_HCA_ROLE_H_
#define RAILHEAD_FABRIC_HCA_ROLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

enum class HcaRole {
  kPhysicalFunction,
  kVirtualFunction,    // of SR-IOV: on the host, or passed through to a virtual machine
  kScalableFunction,   // mlx5_core.sf.N
  kBond,               // several ports as one device
  kSoftware,           // rxe or siw on some network interface
  kSwitchdevFunction,  // a PF whose embedded switch is in switchdev mode: it carries no RDMA itself
  kRepresentor,        // the switch's side of a VF or an SF
  kSwitchManagement,   // of an NVLink switch
  kManagementPlane,    // of an adapter with several planes: "smi0"
  kDataDirect,         // the Data Direct side of another device: "mlx5_0_dma"
};

// What tells the role.
struct RoleEvidence {
  std::string name;               // of the RDMA device
  bool on_pci = false;            // it has a PCI function of its own
  std::string vendor;             // of the function, four hex digits: "15b3"; "" when unknown
  std::string device;             // PCI device id, the same
  std::string part;               // "sf88": a scalable function below the function; else ""
  std::string physical_function;  // of a virtual function on its host: the PF's address; else ""
  std::string port_name;          // of the interface: phys_port_name, "pf0vf1"; "" when it has none
  bool bond = false;              // the interface is a bond
  bool no_gid_table = false;      // its RoCE port has a GID table without a single place
  bool manages_switch = false;    // its vital product data says so (SMDL=SW_MNG)
  bool has_main_side = false;     // there is a device of its name without "_dma"

  bool operator==(const RoleEvidence&) const = default;
};

HcaRole RoleOf(const RoleEvidence& evidence);

// "pf", "vf", "sf", "bond", "software", "switchdev-pf", "representor", "nvlink-switch",
// "management-plane", "data-direct".
absl::string_view ToString(HcaRole role);

// Nothing for another text.
std::optional<HcaRole> ParseHcaRole(absl::string_view name);

// Whether an embedded switch calls the port of another function so: "pf0vf1", "c1pf0sf88". Its own
// uplink is "p0".
bool IsRepresentorPort(absl::string_view port_name);

// Whether a device of this role can carry a pod's data.
bool CanBeRail(HcaRole role);

// The names of those that can.
std::vector<std::string> RailRoleNames();

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_HCA_ROLE_H_
