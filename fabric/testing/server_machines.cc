// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fabric/testing/role_machines.h"

namespace railhead::fabric::testing {
namespace {

// A function of a board: its address, and the interface of those that are set to Ethernet.
struct Function {
  std::string pci;
  std::string ethernet = "";
};

// NICs by NVIDIA in the order of their addresses, with the kernel's names. Those for storage and
// management are rails as well, unless selectors leave them out.
RoleMachine NvidiaNics(const std::string& name, const std::string& device,
                       const std::vector<Function>& functions) {
  RoleMachine machine{name, {}};
  for (size_t i = 0; i < functions.size(); ++i) {
    const auto rail = static_cast<int>(i);
    RoleDevice pf = {absl::StrCat("mlx5_", i), functions[i].pci, absl::StrCat(i, " pf")};
    pf.device = device;
    if (!functions[i].ethernet.empty()) pf = Roce(pf, functions[i].ethernet, rail);
    machine.devices.push_back(pf);
  }
  return machine;
}

// Four NICs, of one port each.
RoleMachine Dgx1() {
  return NvidiaNics("DGX-1 V100", "1013",
                    {{"0000:05:00.0"}, {"0000:0c:00.0"}, {"0000:84:00.0"}, {"0000:8b:00.0"}});
}

// Eight compute NICs, and two of two ports each for storage and management in the midst.
RoleMachine DgxA100WithStorage() {
  return NvidiaNics("DGX A100 with its storage NICs", "101b",
                    {{"0000:0c:00.0"},
                     {"0000:12:00.0"},
                     {"0000:4b:00.0"},
                     {"0000:54:00.0"},
                     {"0000:61:00.0", "enp97s0f0"},
                     {"0000:61:00.1", "enp97s0f1"},
                     {"0000:8d:00.0"},
                     {"0000:94:00.0"},
                     {"0000:ba:00.0"},
                     {"0000:cc:00.0"},
                     {"0000:e1:00.0", "enp225s0f0"},
                     {"0000:e1:00.1", "enp225s0f1"}});
}

std::vector<Function> DgxH100Functions() {
  return {{"0000:18:00.0"}, {"0000:29:00.0"}, {"0000:29:00.1", "enp41s0f1np1"},
          {"0000:40:00.0"}, {"0000:4f:00.0"}, {"0000:5e:00.0"},
          {"0000:9a:00.0"}, {"0000:aa:00.0"}, {"0000:aa:00.1", "enp170s0f1np1"},
          {"0000:c0:00.0"}, {"0000:ce:00.0"}, {"0000:dc:00.0"}};
}

RoleMachine DgxH100WithStorage() { return NvidiaNics("DGX H100", "1021", DgxH100Functions()); }

// The same with the names that udev's rule of rdma-core gives: by bus, so that their order as words
// is not that of the slots.
RoleMachine DgxH100ByPath() {
  RoleMachine machine = NvidiaNics("DGX H100, names by path", "1021", DgxH100Functions());
  const char* names[] = {"ibp24s0",      "ibp41s0f0", "rocep41s0f1", "ibp64s0",
                         "ibp79s0",      "ibp94s0",   "ibp154s0",    "ibp170s0f0",
                         "rocep170s0f1", "ibp192s0",  "ibp206s0",    "ibp220s0"};
  for (size_t i = 0; i < machine.devices.size(); ++i) machine.devices[i].name = names[i];
  return machine;
}

// A compute tray: PCI domains by processor; a BlueField of two ports beside every two NICs.
RoleMachine DgxGb200() {
  return NvidiaNics("DGX GB200 compute tray", "1021",
                    {{"0000:03:00.0"},
                     {"0002:03:00.0"},
                     {"0006:03:00.0", "enP6p3s0f0np0"},
                     {"0006:03:00.1", "enP6p3s0f1np1"},
                     {"0010:03:00.0"},
                     {"0012:03:00.0"},
                     {"0016:03:00.0", "enP22p3s0f0np0"},
                     {"0016:03:00.1", "enP22p3s0f1np1"}});
}

// RoCE NICs by Broadcom, one for each GPU.
RoleMachine Thor() {
  RoleMachine machine{"eight GPUs with Broadcom Thor 2", {}};
  const int buses[] = {0x1d, 0x3d, 0x4d, 0x5d, 0x9f, 0xbd, 0xcd, 0xdd};
  for (int i = 0; i < 8; ++i) {
    RoleDevice nic = {absl::StrCat("bnxt_re", i), absl::StrFormat("0000:%02x:00.0", buses[i]),
                      absl::StrCat(i, " pf")};
    nic.vendor = "14e4";
    nic.device = "1760";
    machine.devices.push_back(Roce(nic, absl::StrFormat("ens%df0np0", 11 + i), i));
  }
  return machine;
}

// irdma drives both ports as iWARP or, with roce_ena=1, as RoCE; the node type differs.
RoleMachine IntelE810(bool roce) {
  RoleMachine machine{roce ? "Intel E810 with RoCE" : "Intel E810 with iWARP", {}};
  for (int i = 0; i < 2; ++i) {
    RoleDevice port = {absl::StrCat(roce ? "rocep" : "iwp", "24s0f", i),
                       absl::StrCat("0000:18:00.", i), absl::StrCat(i, " pf")};
    port.vendor = "8086";
    port.device = "1592";
    port.node_type = roce ? "1: CA" : "4: RNIC";
    machine.devices.push_back(Roce(port, absl::StrCat("ens1f", i), i));
  }
  return machine;
}

// One device for both ports, at the card's fifth function; the other functions are for storage.
RoleMachine ChelsioT6() {
  RoleMachine machine{"Chelsio T6 with iWARP", {}};
  RoleDevice nic = {"cxgb4_0", "0000:3b:00.4", "0 pf"};
  nic.vendor = "1425";
  nic.device = "6415";
  nic.node_type = "4: RNIC";
  machine.devices.push_back(Roce(nic, "ens3f4", 0));
  return machine;
}

}  // namespace

std::vector<RoleMachine> ServerMachines() {
  return {Dgx1(), DgxA100WithStorage(), DgxH100WithStorage(), DgxH100ByPath(), DgxGb200(),
          Thor(), IntelE810(true),      IntelE810(false),     ChelsioT6()};
}

}  // namespace railhead::fabric::testing
