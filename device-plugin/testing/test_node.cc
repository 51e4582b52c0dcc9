// SPDX-License-Identifier: Apache-2.0
//
// railhead-test-node MACHINE KUBELET-DIR: the tree of a well-known machine ("DGX H100"), and a
// plugin that offers its GPUs to kubelet as example.com/gpu, with their PCI addresses as ids.
// Prints the tree's root on one line, and serves until its standard input ends.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "device-plugin/resource_plugin.h"
#include "device-plugin/wake_up.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/machines.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

int Run(const std::string& machine_name, const std::string& kubelet_dir) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("railhead-test-node"));
  const fabric::testing::SysfsTree tree;
  for (const fabric::testing::Machine& machine : fabric::testing::Machines()) {
    if (machine.name == machine_name) fabric::testing::Build(machine, tree);
  }
  const fabric::NodeInventory inventory = fabric::ReadInventory(tree.root()).value();
  std::vector<Device> gpus;
  for (const fabric::Gpu& gpu : inventory.gpus) {
    Device device;
    device.id = gpu.pci_address;
    device.hca.name = gpu.pci_address;
    device.hca.numa_node = gpu.numa_node;
    device.hca.usable = true;
    gpus.push_back(device);
  }
  if (gpus.empty()) {
    std::fprintf(stderr, "no machine %s\n", machine_name.c_str());
    return 2;
  }
  const auto wake_up = WakeUp::Make(kubelet_dir).value();
  RailsFiles files(kubelet_dir + "/gpus");
  ResourcePlugin plugin("example.com/gpu", kubelet_dir,
                        {"node", &files, [] { return std::vector<std::string>(); }},
                        Registration::Timing{}, [&wake_up] { wake_up->Wake(); });
  plugin.Publish({}, gpus);
  std::printf("%s\n", tree.root().c_str());
  std::fflush(stdout);
  while (true) {
    const TimePoint now = std::chrono::steady_clock::now();
    const TimePoint wake_at = plugin.Step(now);
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(wake_at - now);
    if (wake_up->Sleep(STDIN_FILENO, std::max(pause, std::chrono::milliseconds(0)))) return 0;
  }
}

}  // namespace
}  // namespace railhead::device_plugin

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MACHINE KUBELET-DIR\n", argv[0]);
    return 2;
  }
  return railhead::device_plugin::Run(argv[1], argv[2]);
}
