// SPDX-License-Identifier: Apache-2.0
//
// railhead-test-node MACHINE|ROOT KUBELET-DIR: the tree of a well-known machine ("DGX H100"), or
// the one at a path ("/"), and a plugin that offers its GPUs to kubelet as example.com/gpu, with
// their PCI addresses as ids. Prints the tree's root on one line, and serves until its standard
// input ends.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "device-plugin/config/config.h"
#include "device-plugin/testing/gpu_plugin.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/machines.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

// QEMU's displays, which stand for GPUs in the testbed.
constexpr char kQemuVendor[] = "1234";

int Run(const std::string& machine_name, const std::string& kubelet_dir) {
  const fabric::testing::SysfsTree tree;
  const bool is_root = absl::StartsWith(machine_name, "/");
  for (const fabric::testing::Machine& machine : fabric::testing::Machines()) {
    if (machine.name == machine_name) fabric::testing::Build(machine, tree);
  }
  const std::string root = is_root ? machine_name : tree.root();
  AgentConfig config;
  config.gpu_vendors = {kQemuVendor};
  const fabric::NodeInventory inventory = fabric::ReadInventory(root, GpuVendors(config)).value();
  if (inventory.gpus.empty()) {
    std::fprintf(stderr, "no GPU in %s\n", machine_name.c_str());
    return 2;
  }
  std::printf("%s\n", root.c_str());
  std::fflush(stdout);
  testing::OfferGpus(kubelet_dir, inventory.gpus, STDIN_FILENO);
  return 0;
}

}  // namespace
}  // namespace railhead::device_plugin

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MACHINE|ROOT KUBELET-DIR\n", argv[0]);
    return 2;
  }
  return railhead::device_plugin::Run(argv[1], argv[2]);
}
