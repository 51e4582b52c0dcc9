// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fabric/testing/role_machines.h"

namespace railhead::fabric::testing {
namespace {

// Elastic fabric adapters have no interface and no link layer that Linux knows. Their names say bus
// and slot.
RoleDevice ElasticAdapter(int bus, int slot, int rail, const std::string& generation) {
  RoleDevice efa = {absl::StrFormat("rdmap%ds%d", bus, slot),
                    absl::StrFormat("0000:%02x:%02x.0", bus, slot), absl::StrCat(rail, " pf")};
  efa.vendor = "1d0f";
  efa.device = generation;
  efa.link_layer = "Unknown";
  efa.node_type = "7: unspecified";
  return efa;
}

// p4d.24xlarge: one adapter for two GPUs.
RoleMachine AwsP4d() {
  RoleMachine machine{"AWS p4d.24xlarge", {}};
  int rail = 0;
  for (const int bus : {16, 32, 144, 160}) {
    machine.devices.push_back(ElasticAdapter(bus, 27, rail++, "efa1"));
  }
  return machine;
}

// p5.48xlarge: four adapters at the switch of each GPU.
RoleMachine AwsP5() {
  RoleMachine machine{"AWS p5.48xlarge", {}};
  for (int gpu = 0; gpu < 8; ++gpu) {
    for (int k = 0; k < 4; ++k) {
      machine.devices.push_back(ElasticAdapter(79 + 17 * gpu + k, 0, 4 * gpu + k, "efa2"));
    }
  }
  return machine;
}

// A virtual function in a virtual machine, with a PCI domain of its own by Hyper-V.
RoleDevice HyperVFunction(const std::string& name, int domain, int rail) {
  RoleDevice vf = {name, absl::StrFormat("%04x:00:00.0", domain), absl::StrCat(rail, " vf")};
  vf.device = "101e";
  return vf;
}

// ND A100 v4: beside the InfiniBand functions one of the Ethernet adapter, by "accelerated
// networking", whose interface has no address: eth0 above it has.
RoleMachine AzureNdA100() {
  RoleMachine machine{"Azure ND A100 v4", {}};
  for (int i = 0; i < 8; ++i) {
    RoleDevice vf = HyperVFunction(absl::StrCat("mlx5_ib", i), 0x0101 + i, i);
    vf.netdev = absl::StrCat("ib", i);
    machine.devices.push_back(vf);
  }
  RoleDevice ethernet = HyperVFunction("mlx5_an0", 0xdb5c, 8);
  machine.devices.push_back(Roce(ethernet, "enP56156s1", 8));
  return machine;
}

// HB176rs v4: one function for the whole machine.
RoleMachine AzureHb() {
  RoleMachine machine{"Azure HBv4", {}};
  RoleDevice vf = HyperVFunction("mlx5_ib0", 0x0101, 0);
  vf.netdev = "ib0";
  machine.devices.push_back(vf);
  return machine;
}

// A4 and A3 Ultra: RoCE functions in a virtual machine; the other interfaces (gVNIC) carry no RDMA.
RoleMachine GcpA4() {
  RoleMachine machine{"Google A4", {}};
  const int buses[] = {0x91, 0x92, 0xbf, 0xc0, 0xcb, 0xcc, 0xd3, 0xd4};
  for (int i = 0; i < 8; ++i) {
    RoleDevice vf = {absl::StrCat("mlx5_", i), absl::StrFormat("0000:%02x:00.0", buses[i]),
                     absl::StrCat(i, " vf")};
    vf.device = "101e";
    machine.devices.push_back(Roce(vf, absl::StrFormat("gpu%drdma0", i), i));
  }
  return machine;
}

// BM.GPU4.8: sixteen ports of eight two-port adapters for RDMA. The two ports of the cloud's own
// network are rails as well, unless selectors leave them out.
RoleMachine OciA100() {
  RoleMachine machine{"OCI BM.GPU4.8", {}};
  const int buses[] = {0x0c, 0x16, 0x48, 0x4c, 0x51, 0x8a, 0x94, 0x98, 0xc3, 0xd1};
  int rail = 0;
  int ethernet = 0;
  int rdma = 0;
  for (const int bus : buses) {
    const bool front = bus == 0x51 || bus == 0x98;
    for (int port = 0; port < (front ? 1 : 2); ++port) {
      RoleDevice pf = {absl::StrCat("mlx5_", rail), absl::StrFormat("0000:%02x:00.%d", bus, port),
                       absl::StrCat(rail, " pf")};
      pf.device = "101d";
      const std::string netdev =
          front ? absl::StrCat("eth", ethernet++) : absl::StrCat("rdma", rdma++);
      machine.devices.push_back(Roce(pf, netdev, rail));
      ++rail;
    }
  }
  return machine;
}

// ecs.ebmgn8v and others: Alibaba's elastic RDMA is iWARP, on the virtual NIC of a machine.
RoleMachine AlibabaErdma() {
  RoleMachine machine{"Alibaba Cloud with eRDMA", {}};
  for (int i = 0; i < 2; ++i) {
    RoleDevice erdma = {absl::StrCat("erdma_", i), absl::StrFormat("0000:00:%02x.0", 5 + i),
                        absl::StrCat(i, " pf")};
    erdma.vendor = "1ded";
    erdma.device = "107f";
    erdma.node_type = "4: RNIC";
    machine.devices.push_back(Roce(erdma, absl::StrCat("eth", i), i));
  }
  return machine;
}

}  // namespace

std::vector<RoleMachine> CloudMachines() {
  return {AwsP4d(), AwsP5(), AzureNdA100(), AzureHb(), GcpA4(), OciA100(), AlibabaErdma()};
}

}  // namespace railhead::fabric::testing
