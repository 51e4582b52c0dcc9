// SPDX-License-Identifier: Apache-2.0
#include "fabric/testing/role_machines.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "fabric/hca_role.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric::testing {
namespace {

// A board's name, then the keyword of a switch's manager.
constexpr char kVpd[] = "\x82\x05\0Board\x90\x0e\0V1\x0bSMDL=SW_MNG\x78";

// ::ffff:10.<rail>.0.1
std::string TenNet(int rail) {
  return absl::StrFormat("0000:0000:0000:0000:0000:ffff:0a%02x:0001", rail);
}

RoleDevice Pf(int rail, const std::string& pci) {
  return {absl::StrCat("mlx5_", rail), pci, absl::StrCat(rail, " pf")};
}

// Eight compute NICs and two for storage; an administrator has made a virtual function of each of
// the first two.
RoleMachine DgxH100WithVirtualFunctions() {
  RoleMachine machine{"DGX H100 with VFs", {}};
  const int buses[] = {0x18, 0x29, 0x40, 0x4f, 0x5e, 0x82, 0x9a, 0xaa, 0xbc, 0xcc};
  for (int i = 0; i < 10; ++i) {
    machine.devices.push_back(Pf(i, absl::StrFormat("0000:%02x:00.0", buses[i])));
  }
  for (int i = 0; i < 2; ++i) {
    const std::string pf = machine.devices[static_cast<size_t>(i)].pci;
    RoleDevice vf = {absl::StrCat("mlx5_", 10 + i), absl::StrFormat("0000:%02x:00.1", buses[i]),
                     "- vf"};
    vf.device = "101e";
    vf.physical = pf;
    machine.devices.push_back(vf);
  }
  return machine;
}

// Beside its eight NICs, two functions that manage the NVLink switches, with ACTIVE ports.
RoleMachine HgxB200() {
  RoleMachine machine{"HGX B200", {}};
  for (int i = 0; i < 8; ++i) {
    machine.devices.push_back(Pf(i, absl::StrFormat("0000:%02x:00.0", 0x20 + 0x10 * i)));
  }
  for (int i = 0; i < 2; ++i) {
    RoleDevice manager = {absl::StrCat("ibp5s", i), absl::StrFormat("0000:05:00.%d", i),
                          "- nvlink-switch"};
    manager.manages_switch = true;
    machine.devices.push_back(manager);
  }
  return machine;
}

// ConnectX-8: a device with planes, its management side, and its Data Direct side.
RoleMachine Gb300() {
  RoleMachine machine{"GB300", {}};
  for (int i = 0; i < 4; ++i) {
    const std::string pci = absl::StrFormat("%04x:03:00.0", 2 * i);
    machine.devices.push_back(Pf(i, pci));
    machine.devices.push_back({absl::StrCat("smi", i), pci, "- management-plane"});
    machine.devices.push_back({absl::StrCat("mlx5_", i, "_dma"), pci, "- data-direct"});
  }
  return machine;
}

// The card is a plain NIC of its host.
RoleMachine BlueFieldAsNic() {
  RoleMachine machine{"BlueField-3 in NIC mode", {}};
  for (int i = 0; i < 2; ++i) {
    RoleDevice pf = Pf(i, absl::StrCat("0000:5a:00.", i));
    pf.device = "a2dc";
    machine.devices.push_back(Roce(pf, absl::StrCat("ens1f", i, "np", i), i));
  }
  return machine;
}

// On the card's own processor: the PFs are in switchdev mode, and scalable functions carry RDMA.
RoleMachine BlueFieldAsDpu() {
  RoleMachine machine{"BlueField-3 in DPU mode, on its processor", {}};
  for (int i = 0; i < 2; ++i) {
    RoleDevice pf = {absl::StrCat("mlx5_", i), absl::StrCat("0000:03:00.", i), "- switchdev-pf"};
    pf.device = "a2dc";
    pf.link_layer = "Ethernet";
    pf.netdev = absl::StrCat("p", i);
    pf.port_name = absl::StrCat("p", i);
    pf.empty_table = true;
    machine.devices.push_back(pf);
    RoleDevice sf = {absl::StrCat("mlx5_", 2 + i), pf.pci, absl::StrCat(i, " sf")};
    sf.device = "a2dc";
    sf.sf = i;
    machine.devices.push_back(Roce(sf, absl::StrCat("enp3s0f", i, "s0"), i));
  }
  return machine;
}

// A host whose virtual switch is in the NIC: pods get virtual functions.
RoleMachine SwitchdevHost() {
  RoleMachine machine{"host with a PF in switchdev mode", {}};
  RoleDevice pf = {"mlx5_0", "0000:3b:00.0", "- switchdev-pf"};
  pf.link_layer = "Ethernet";
  pf.netdev = "ens1f0np0";
  pf.port_name = "p0";
  pf.empty_table = true;
  machine.devices.push_back(pf);
  RoleDevice representor = {"mlx5_3", "0000:3b:00.0", "- representor"};
  representor.link_layer = "Ethernet";
  representor.netdev = "ens1f0npf0vf0";
  representor.port_name = "pf0vf0";
  machine.devices.push_back(representor);
  for (int i = 0; i < 2; ++i) {
    RoleDevice vf = {absl::StrCat("mlx5_", 1 + i), absl::StrCat("0000:3b:00.", 2 + i),
                     absl::StrCat(i, " vf")};
    vf.physical = pf.pci;
    vf.device = "101e";
    machine.devices.push_back(Roce(vf, absl::StrCat("ens1f0v", i), i));
  }
  return machine;
}

// Scalable functions of a PF that is a NIC itself.
RoleMachine ScalableFunctions() {
  RoleMachine machine{"PF with scalable functions", {}};
  machine.devices.push_back(Roce(Pf(0, "0000:08:00.0"), "enp8s0f0np0", 0));
  for (int i = 0; i < 2; ++i) {
    RoleDevice sf = {absl::StrCat("mlx5_", 2 + i), "0000:08:00.0", "- sf"};
    sf.sf = 88 + i;
    machine.devices.push_back(Roce(sf, absl::StrCat("enp8s0f0s", 88 + i), 10 + i));
  }
  return machine;
}

// p5.48xlarge: EFA devices, which have no interface and no link layer that Linux knows.
RoleMachine Efa() {
  RoleMachine machine{"AWS p5 with EFA", {}};
  for (int i = 0; i < 8; ++i) {
    RoleDevice efa = {absl::StrCat("rdmap", 79 + i, "s0"),
                      absl::StrFormat("0000:%02x:00.0", 0x4f + i), absl::StrCat(i, " pf")};
    efa.vendor = "1d0f";
    efa.device = "efa2";
    efa.link_layer = "Unknown";
    efa.node_type = "7: unspecified";
    machine.devices.push_back(efa);
  }
  return machine;
}

// Bare metal with one virtual function of each PF, which pods get by SR-IOV CNI.
RoleMachine OciRoce() {
  RoleMachine machine{"OCI BM.GPU.H100 with VFs", {}};
  for (int i = 0; i < 8; ++i) {
    const int bus = 0x0c + 0x10 * i;
    RoleDevice pf = Roce(Pf(i, absl::StrFormat("0000:%02x:00.0", bus)), absl::StrCat("rdma", i), i);
    RoleDevice vf = {absl::StrCat("mlx5_", 20 + i), absl::StrFormat("0000:%02x:00.1", bus), "- vf"};
    vf.physical = pf.pci;
    vf.device = "101e";
    vf.link_layer = "Ethernet";
    vf.netdev = absl::StrCat("rdma", i, "v0");
    vf.state = "1: DOWN";
    machine.devices.push_back(pf);
    machine.devices.push_back(vf);
  }
  return machine;
}

// ND H100 v5: virtual functions of InfiniBand NICs in a virtual machine, which does not see their
// PFs; domains by Hyper-V; and the adapter of its own network.
RoleMachine AzureInfiniBand() {
  RoleMachine machine{"Azure ND H100 v5", {}};
  for (int i = 0; i < 8; ++i) {
    RoleDevice vf = {absl::StrCat("mlx5_ib", i), absl::StrFormat("%04x:00:00.0", 0x0101 + i),
                     absl::StrCat(i, " vf")};
    vf.device = "101e";
    vf.netdev = absl::StrCat("ib", i);
    machine.devices.push_back(vf);
  }
  RoleDevice mana = {"mana_0", "7870:00:00.0", "8 pf"};
  mana.vendor = "1414";
  mana.device = "00ba";
  machine.devices.push_back(Roce(mana, "eth0", 8));
  return machine;
}

// RoCE LAG: both ports of a card are one device.
RoleMachine Bonds() {
  RoleMachine machine{"bonds", {}};
  for (int i = 0; i < 2; ++i) {
    RoleDevice bond = {absl::StrCat("mlx5_bond_", i), absl::StrFormat("0000:%02x:00.0", 0x17 + i),
                       absl::StrCat(i, " bond")};
    bond = Roce(bond, absl::StrCat("bond", i), i);
    bond.slaves = {absl::StrCat("ens", 1 + i, "f0np0"), absl::StrCat("ens", 1 + i, "f1np1")};
    machine.devices.push_back(bond);
  }
  return machine;
}

// One card at two host bridges: two functions that are two rails.
RoleMachine SocketDirect() {
  RoleMachine machine{"socket direct", {}};
  machine.devices.push_back(Pf(0, "0000:1a:00.0"));
  machine.devices.push_back(Pf(1, "0000:b1:00.0"));
  return machine;
}

// rxe on a NIC that is an HCA itself, and on one that is not.
RoleMachine SoftwareBesideHardware() {
  RoleMachine machine{"software beside hardware", {}};
  machine.devices.push_back(Roce(Pf(0, "0000:18:00.0"), "ens1np0", 0));
  RoleDevice beside = {"rxe0", "", "- software"};
  beside.link_layer = "Ethernet";
  beside.netdev = "ens1np0";
  machine.devices.push_back(beside);
  RoleDevice alone = {"rxe1", "", "1 software"};
  alone.link_layer = "Ethernet";
  alone.netdev = "dummy0";
  machine.devices.push_back(alone);
  return machine;
}

RoleMachine Pollara() {
  RoleMachine machine{"MI300X with Pollara NICs", {}};
  for (int i = 0; i < 8; ++i) {
    RoleDevice nic = {absl::StrCat("ionic_", i), absl::StrFormat("0000:%02x:00.0", 0x06 + 0x10 * i),
                      absl::StrCat(i, " pf")};
    nic.vendor = "1dd8";
    nic.device = "1002";
    machine.devices.push_back(Roce(nic, absl::StrCat("benic", i, "p1"), i));
  }
  return machine;
}

void BuildPort(const RoleDevice& device, const std::string& folder, const SysfsTree& tree) {
  tree.Write(folder + "/node_type", device.node_type + "\n");
  const std::string port = folder + "/ports/1";
  if (device.empty_table) tree.MakeFolder(port + "/gid_attrs/types");
  for (size_t i = 0; i < device.gids.size(); ++i) {
    tree.Write(absl::StrCat(port, "/gid_attrs/types/", i), "RoCE v2\n");
    tree.Write(absl::StrCat(port, "/gids/", i), device.gids[i] + "\n");
    tree.Write(absl::StrCat(port, "/gid_attrs/ndevs/", i), device.netdev + "\n");
  }
  if (device.netdev.empty()) return;
  const std::string net = "/sys/class/net/" + device.netdev;
  tree.Write(net + "/flags", "0x1003\n");
  if (!device.port_name.empty()) tree.Write(net + "/phys_port_name", device.port_name + "\n");
  if (!device.slaves.empty()) {
    tree.Write(net + "/bonding/slaves", absl::StrJoin(device.slaves, " ") + "\n");
  }
}

}  // namespace

RoleDevice Roce(RoleDevice device, const std::string& netdev, int rail) {
  device.link_layer = "Ethernet";
  device.netdev = netdev;
  device.gids = {"fe80:0000:0000:0000:0000:0000:0000:0001", TenNet(rail)};
  return device;
}

std::vector<RoleMachine> RoleMachines() {
  std::vector<RoleMachine> machines = {DgxH100WithVirtualFunctions(),
                                       HgxB200(),
                                       Gb300(),
                                       BlueFieldAsNic(),
                                       BlueFieldAsDpu(),
                                       SwitchdevHost(),
                                       ScalableFunctions(),
                                       Efa(),
                                       OciRoce(),
                                       AzureInfiniBand(),
                                       Bonds(),
                                       SocketDirect(),
                                       SoftwareBesideHardware(),
                                       Pollara()};
  for (const auto& more : {CloudMachines(), ServerMachines()}) {
    machines.insert(machines.end(), more.begin(), more.end());
  }
  return machines;
}

void Build(const RoleMachine& machine, const SysfsTree& tree) {
  int uverbs = 0;
  for (const RoleDevice& device : machine.devices) {
    FakeHca hca;
    hca.name = device.name;
    hca.uverbs = uverbs++;
    hca.link_layer = device.link_layer;
    hca.state = device.state;
    const std::string of_class = "/sys/class/infiniband/" + device.name;
    if (device.pci.empty()) {
      hca.netdev = device.netdev;
      tree.AddRxe(hca);
      BuildPort(device, of_class, tree);
      continue;
    }
    const std::string domain = device.pci.substr(0, device.pci.find(':'));
    hca.above = absl::StrCat("pci", domain, ":00");
    hca.pci = device.pci;
    const std::string function = absl::StrCat("/sys/devices/", hca.above, "/", device.pci);
    if (device.sf >= 0) {
      hca.above = absl::StrCat(hca.above, "/", device.pci);
      hca.pci = absl::StrCat("mlx5_core.sf.", 2 + device.sf);
      tree.Write(absl::StrCat("/sys/devices/", hca.above, "/", hca.pci, "/sfnum"),
                 absl::StrCat(device.sf, "\n"));
    }
    hca.netdev = device.netdev;
    tree.AddHca(hca);
    tree.Write(function + "/vendor", absl::StrCat("0x", device.vendor, "\n"));
    tree.Write(function + "/device", absl::StrCat("0x", device.device, "\n"));
    tree.Link("/sys/bus/pci/devices/" + device.pci, "../../../.." + function);
    if (!device.physical.empty()) tree.Link(function + "/physfn", "../" + device.physical);
    if (device.manages_switch) {
      tree.Write(function + "/vpd", std::string(kVpd, sizeof(kVpd) - 1));
    }
    if (!device.netdev.empty()) {
      const std::string net =
          absl::StrCat("/devices/", hca.above, "/", hca.pci, "/net/", device.netdev);
      tree.Link("/sys/class/net/" + device.netdev, "../.." + net);
      tree.Link(absl::StrCat("/sys", net, "/device"), absl::StrCat("../../../", hca.pci));
    }
    if (IsRepresentorPort(device.port_name)) {
      tree.Write(of_class + "/ports/1/gid_attrs/ndevs/0", device.netdev + "\n");
    }
    BuildPort(device, of_class, tree);
  }
}

}  // namespace railhead::fabric::testing
