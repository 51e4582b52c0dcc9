// SPDX-License-Identifier: Apache-2.0
#include "fabric/testing/machines.h"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace railhead::fabric::testing {
namespace {

PciDevice Gpu(std::string path, int numa, std::string vendor = "0x10de",
              std::string pci_class = "0x030200") {
  return {std::move(path), numa, std::move(vendor), std::move(pci_class), "", true};
}

PciDevice Nic(std::string path, int numa, std::string hca, std::string vendor = "0x15b3") {
  return {std::move(path), numa, std::move(vendor), "0x020700", std::move(hca), false};
}

PciDevice Other(std::string path, int numa, std::string vendor, std::string pci_class) {
  return {std::move(path), numa, std::move(vendor), std::move(pci_class), "", false};
}

// "0000:1b:00.0"
std::string Address(int bus, int device = 0) {
  return absl::StrFormat("0000:%02x:%02x.0", bus, device);
}

// Two GPUs and two NICs behind a switch of switches, four times; EPYC with four NUMA nodes a
// socket.
Machine DgxA100() {
  Machine machine{"DGX A100", {}};
  const int buses[] = {0x00, 0x40, 0x80, 0xc0};
  const int numa[] = {3, 1, 7, 5};
  for (int quad = 0; quad < 4; ++quad) {
    const int b = buses[quad];
    const std::string upper =
        absl::StrFormat("pci0000:%02x/%s/%s", b, Address(b, 1), Address(b + 1));
    const auto lower = [&](int port, int bus) {
      return absl::StrCat(upper, "/", Address(b + 2, port), "/", Address(bus), "/",
                          Address(bus + 1));
    };
    machine.devices.push_back(Gpu(absl::StrCat(lower(0, b + 3), "/", Address(b + 7)), numa[quad]));
    machine.devices.push_back(Gpu(absl::StrCat(lower(1, b + 8), "/", Address(b + 15)), numa[quad]));
    for (int k = 0; k < 2; ++k) {
      machine.devices.push_back(
          Nic(absl::StrCat(lower(4 + k, b + 16 + 4 * k), "/", Address(b + 18 + 4 * k)), numa[quad],
              absl::StrCat("mlx5_", 2 * quad + k)));
    }
  }
  // The storage adapter has a host bridge of its own; an NVSwitch and the BMC's display are no
  // GPUs.
  machine.devices.push_back(Nic("pci0000:e0/0000:e0:03.1/0000:e1:00.0", 4, "mlx5_8"));
  machine.devices.push_back(Other("pci0000:e0/0000:e0:04.1/0000:e2:00.0", 4, "0x10de", "0x068000"));
  machine.devices.push_back(Other("pci0000:60/0000:60:05.2/0000:61:00.0", 2, "0x1a03", "0x030000"));
  return machine;
}

// Each GPU shares a switch with its NIC, and has the host bridge for itself.
Machine DgxH100() {
  Machine machine{"DGX H100", {}};
  const int gpus[] = {0x1b, 0x43, 0x52, 0x61, 0x9d, 0xc3, 0xd1, 0xdf};
  for (int i = 0; i < 8; ++i) {
    const int g = gpus[i];
    const std::string upper =
        absl::StrFormat("pci0000:%02x/%s/%s", g - 6, Address(g - 6, 1), Address(g - 5));
    machine.devices.push_back(Nic(absl::StrCat(upper, "/", Address(g - 4, 0), "/", Address(g - 3)),
                                  i / 4, absl::StrCat("mlx5_", i)));
    machine.devices.push_back(
        Gpu(absl::StrCat(upper, "/", Address(g - 4, 1), "/", Address(g)), i / 4));
  }
  return machine;
}

// Two switches under each host bridge, two GPUs and one NIC at each switch, and a NIC that hangs at
// a root port.
Machine HgxWithSwitches() {
  Machine machine{"HGX with PCIe switches", {}};
  int nic = 0;
  for (int socket = 0; socket < 2; ++socket) {
    const int b = 0x80 * socket;
    for (int sw = 0; sw < 2; ++sw) {
      const int u = b + 0x10 * (sw + 1);
      const std::string upper =
          absl::StrFormat("pci0000:%02x/%s/%s", b, Address(b, sw + 1), Address(u));
      for (int k = 0; k < 2; ++k) {
        machine.devices.push_back(
            Gpu(absl::StrCat(upper, "/", Address(u + 1, k), "/", Address(u + 2 + k)), socket));
      }
      machine.devices.push_back(
          Nic(absl::StrCat(upper, "/", Address(u + 1, 8), "/", Address(u + 8)), socket,
              absl::StrCat("mlx5_", nic++)));
    }
    machine.devices.push_back(
        Nic(absl::StrFormat("pci0000:%02x/%s/%s", b, Address(b, 9), Address(b + 0x30)), socket,
            absl::StrCat("mlx5_", nic++)));
  }
  return machine;
}

// No GPU shares a host bridge with a NIC: the memory of both hangs at the same Grace.
Machine Gb200() {
  Machine machine{"GB200", {}};
  const char* gpus[] = {"0008", "0009", "0018", "0019"};
  const char* nics[] = {"0000", "0002", "0010", "0012"};
  for (int i = 0; i < 4; ++i) {
    machine.devices.push_back(
        Gpu(absl::StrFormat("pci%s:00/%s:00:00.0/%s:01:00.0", gpus[i], gpus[i], gpus[i]), i / 2));
    machine.devices.push_back(
        Nic(absl::StrFormat("pci%s:00/%s:00:00.0/%s:01:00.0/%s:02:00.0/%s:03:00.0", nics[i],
                            nics[i], nics[i], nics[i], nics[i]),
            i / 2, absl::StrCat("mlx5_", i)));
  }
  return machine;
}

// Processing accelerators, by AMD, each at a switch with a NIC by Broadcom.
Machine Mi300x() {
  Machine machine{"MI300X", {}};
  for (int i = 0; i < 8; ++i) {
    const int b = 0x20 * i;
    const std::string upper =
        absl::StrFormat("pci0000:%02x/%s/%s", b, Address(b, 1), Address(b + 1));
    machine.devices.push_back(Gpu(absl::StrCat(upper, "/", Address(b + 2, 0), "/", Address(b + 5)),
                                  i / 4, "0x1002", "0x120000"));
    machine.devices.push_back(Nic(absl::StrCat(upper, "/", Address(b + 2, 1), "/", Address(b + 6)),
                                  i / 4, absl::StrCat("bnxt_re", i), "0x14e4"));
  }
  return machine;
}

// One flat bus, no NUMA node, an emulated display; the GPUs' audio functions are passed through.
Machine VirtualMachine() {
  Machine machine{"virtual machine", {}};
  machine.devices.push_back(Other("pci0000:00/0000:00:02.0", -1, "0x1234", "0x030000"));
  for (int i = 0; i < 2; ++i) {
    machine.devices.push_back(Gpu(absl::StrCat("pci0000:00/", Address(0, 5 + i)), -1));
    machine.devices.push_back(
        Other(absl::StrFormat("pci0000:00/0000:00:%02x.1", 5 + i), -1, "0x10de", "0x040300"));
    machine.devices.push_back(
        Nic(absl::StrCat("pci0000:00/", Address(0, 8 + i)), -1, absl::StrCat("mlx5_", i)));
  }
  return machine;
}

void AddFunction(const SysfsTree& tree, const std::string& folder, int numa,
                 absl::string_view vendor, absl::string_view pci_class) {
  tree.Write(folder + "/numa_node", absl::StrCat(numa, "\n"));
  tree.Write(folder + "/vendor", absl::StrCat(vendor, "\n"));
  tree.Write(folder + "/device", "0x1021\n");
  tree.Link(folder + "/driver", "../../../../bus/pci/drivers/mlx5_core");
  tree.Write(folder + "/class", absl::StrCat(pci_class, "\n"));
  const std::string address = folder.substr(folder.rfind('/') + 1);
  tree.Link("/sys/bus/pci/devices/" + address, "../../../.." + folder);
}

}  // namespace

std::vector<Machine> Machines() {
  return {DgxA100(), DgxH100(), HgxWithSwitches(), Gb200(), Mi300x(), VirtualMachine()};
}

void Build(const Machine& machine, const SysfsTree& tree) {
  int uverbs = 0;
  for (const PciDevice& device : machine.devices) {
    const std::string folder = "/sys/devices/" + device.path;
    const size_t bridges_begin = folder.find('/', std::string("/sys/devices/").size());
    for (size_t at = folder.find('/', bridges_begin + 1); at != std::string::npos;
         at = folder.find('/', at + 1)) {
      AddFunction(tree, folder.substr(0, at), device.numa_node, "0x8086", "0x060400");
    }
    AddFunction(tree, folder, device.numa_node, device.vendor, device.pci_class);
    if (device.hca.empty()) continue;
    FakeHca hca;
    hca.name = device.hca;
    hca.uverbs = uverbs++;
    const size_t name = device.path.rfind('/');
    hca.above = device.path.substr(0, name);
    hca.pci = device.path.substr(name + 1);
    hca.numa_node = absl::StrCat(device.numa_node);
    tree.AddHca(hca);
  }
}

}  // namespace railhead::fabric::testing
