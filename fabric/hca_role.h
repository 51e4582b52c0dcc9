// SPDX-License-Identifier: Apache-2.0
//
// Role of an RDMA device: the kind of each entry of /sys/class/infiniband.
//
// One table gives each role's name, test, and whether it can be a rail. The first test that passes
// applies. Pure.
#ifndef RAILHEAD_FABRIC_HCA_ROLE_H_
#define RAILHEAD_FABRIC_HCA_ROLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

enum class HcaRole {
  kPhysicalFunction,
  kVirtualFunction,    // SR-IOV: on the host, or passed through to a virtual machine
  kScalableFunction,   // mlx5_core.sf.N
  kBond,               // several ports as one device
  kSoftware,           // rxe or siw on a network interface
  kSwitchdevFunction,  // a PF with its embedded switch in switchdev mode: carries no RDMA itself
  kRepresentor,        // the switch side of a VF or SF
  kSwitchManagement,   // of an NVLink switch
  kManagementPlane,    // of an adapter with several planes: "smi0"
  kDataDirect,         // the Data Direct companion of another device: "mlx5_0_dma"
};

// Inputs of the tests.
struct RoleEvidence {
  std::string name;               // of the RDMA device
  bool on_pci = false;            // has its own PCI function
  std::string vendor;             // of the function, four hex digits: "15b3"; "" if unknown
  std::string device;             // PCI device id
  std::string part;               // "sf88": a scalable function below the function; else ""
  std::string physical_function;  // address of the PF of a virtual function on its host; else ""
  std::string port_name;          // phys_port_name of the interface, "pf0vf1"; "" if none
  bool bond = false;              // the interface is a bond
  bool no_gid_table = false;      // its RoCE port has a GID table of size zero
  bool manages_switch = false;    // its vital product data contains SMDL=SW_MNG
  bool has_main_side = false;     // a device of its name without "_dma" exists

  bool operator==(const RoleEvidence&) const = default;
};

HcaRole RoleOf(const RoleEvidence& evidence);

// "pf", "vf", "sf", "bond", "software", "switchdev-pf", "representor", "nvlink-switch",
// "management-plane", "data-direct".
absl::string_view ToString(HcaRole role);

// Returns nullopt for unknown names.
std::optional<HcaRole> ParseHcaRole(absl::string_view name);

// Returns true if an embedded switch uses this name for another function's port: "pf0vf1",
// "c1pf0sf88". Its own uplink is "p0".
bool IsRepresentorPort(absl::string_view port_name);

// Returns true if a device of this role can carry a pod's data.
bool CanBeRail(HcaRole role);

// Returns the names of these roles.
std::vector<std::string> RailRoleNames();

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_HCA_ROLE_H_
