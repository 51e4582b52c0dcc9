// SPDX-License-Identifier: Apache-2.0
//
// Machines whose RDMA devices are not all of one kind, as host trees: virtual and scalable
// functions, bonds, switchdev mode, management functions, and virtual machines. With what people
// who know the machine would say of each device.
#ifndef RAILHEAD_FABRIC_TESTING_ROLE_MACHINES_H_
#define RAILHEAD_FABRIC_TESTING_ROLE_MACHINES_H_

#include <ostream>
#include <string>
#include <vector>

#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric::testing {

struct RoleDevice {
  std::string name;
  std::string pci;   // "" for software
  std::string says;  // "0 pf": its rail and role; "- vf" where it is no rail
  std::string vendor = "15b3";
  std::string device = "1021";
  std::string link_layer = "InfiniBand";
  std::string netdev = "";
  std::string physical = "";   // of a virtual function: its PF
  int sf = -1;                 // of a scalable function: its number
  std::string port_name = "";  // phys_port_name of the interface
  std::vector<std::string> slaves = {};
  // Entries of RoCE v2, of the interface. Without any there is no GID table to be seen.
  std::vector<std::string> gids = {};
  bool empty_table = false;
  bool manages_switch = false;
  std::string node_type = "1: CA";
  std::string state = "4: ACTIVE";
};

struct RoleMachine {
  std::string name;
  std::vector<RoleDevice> devices;

  // For the names of tests.
  friend void PrintTo(const RoleMachine& machine, std::ostream* out) { *out << machine.name; }
};

// The device as a RoCE port of this interface, whose address says the rail.
RoleDevice Roce(RoleDevice device, const std::string& netdev, int rail);

// Machines that clouds rent (cloud_machines.cc), and servers as their makers sell them
// (server_machines.cc).
std::vector<RoleMachine> CloudMachines();
std::vector<RoleMachine> ServerMachines();
// All machines, these too.
std::vector<RoleMachine> RoleMachines();

void Build(const RoleMachine& machine, const SysfsTree& tree);

}  // namespace railhead::fabric::testing

#endif  // RAILHEAD_FABRIC_TESTING_ROLE_MACHINES_H_
