// SPDX-License-Identifier: Apache-2.0
//
// What the node agent costs its node: the program itself, against a kubelet of our own, on the tree
// of a DGX H100 (8 GPUs, 8 HCAs). Prints a table in Markdown.
//
// usage: railhead_device_plugin_bench PATH-OF-RAILHEAD-DEVICE-PLUGIN
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "device-plugin/testing/fake_kubelet.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/machines.h"
#include "fabric/testing/sysfs_tree.h"

extern char** environ;

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

double ResidentMebibytes(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    double kibibytes = 0;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() > 1 && words[0] == "VmRSS:" && absl::SimpleAtod(words[1], &kibibytes)) {
      return kibibytes / 1024;
    }
  }
  return 0;
}

void Row(const std::string& what, double measured, const std::string& unit, double goal) {
  std::printf("| %s | %.2f %s | < %g %s | %s |\n", what.c_str(), measured, unit.c_str(), goal,
              unit.c_str(), measured < goal ? "yes" : "**no**");
}

int Run(const std::string& program) {
  fabric::testing::SysfsTree tree;
  fabric::testing::Build(fabric::testing::Machines()[1], tree);
  std::string base = fs::temp_directory_path() / "railhead-bench-XXXXXX";
  if (mkdtemp(base.data()) == nullptr) return 1;
  fs::create_directories(base + "/dp");
  fs::create_directories(base + "/scratch");
  // 8 HCAs, 16 slots each: 128 devices.
  std::ofstream(base + "/agent.yaml") << "resources: [{name: rdma/hca, slots: 16}]\n";

  std::vector<double> discovery;
  for (int i = 0; i < 200; ++i) {
    const Clock::time_point begin = Clock::now();
    if (fabric::ReadInventory(tree.root())->hcas.size() != 8) return 1;
    discovery.push_back(Milliseconds(Clock::now() - begin));
  }

  testing::FakeKubelet kubelet(base + "/dp", base + "/scratch");
  const testing::FakePodResources pods(base + "/pods.sock", {});
  kubelet.Start();
  std::vector<double> starts;
  std::vector<double> allocations;
  double memory = 0;
  for (int run = 0; run < 10; ++run) {
    std::vector<std::string> words = {program,
                                      "--root",
                                      tree.root(),
                                      "--node-name",
                                      "bench",
                                      "--kubelet-dir",
                                      base + "/dp",
                                      "--config",
                                      base + "/agent.yaml",
                                      "--pod-resources-socket",
                                      base + "/pods.sock",
                                      "--health-address",
                                      "",
                                      "--metrics-address",
                                      "127.0.0.1:0"};
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const Clock::time_point begin = Clock::now();
    pid_t pid = 0;
    if (posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), environ) != 0) return 1;
    const bool listed =
        kubelet.WaitFor([](const testing::Devices& devices) { return devices.size() == 128; });
    starts.push_back(Milliseconds(Clock::now() - begin));
    for (int i = 0; listed && i < 200; ++i) {
      const std::string slot = absl::StrCat("-s", i % 16);
      std::vector<std::string> ids;
      for (const auto& [id, health] : kubelet.devices()) {
        if (absl::EndsWith(id, slot)) ids.push_back(id);
      }
      v1beta1::AllocateResponse response;
      const Clock::time_point asked = Clock::now();
      if (!kubelet.Allocate(ids, &response).ok()) return 1;
      allocations.push_back(Milliseconds(Clock::now() - asked));
    }
    memory = std::max(memory, ResidentMebibytes(pid));
    kill(pid, SIGTERM);
    waitpid(pid, nullptr, 0);
    if (!listed) return 1;
    kubelet.WaitForDevices({});
  }
  kubelet.Stop();
  fs::remove_all(base);

  std::printf("| what | measured | goal | reached |\n|---|---|---|---|\n");
  Row("discovery, 8 GPUs and 8 HCAs, median of 200", Percentile(discovery, 0.5), "ms", 20);
  Row("discovery, 99th percentile", Percentile(discovery, 0.99), "ms", 20);
  Row("start to all devices listed by kubelet, median of 10", Percentile(starts, 0.5), "ms", 300);
  Row("start, slowest of 10", Percentile(starts, 1), "ms", 300);
  Row("Allocate of 8 of 128 devices, median of 2000", Percentile(allocations, 0.5), "ms", 5);
  Row("Allocate, 99th percentile", Percentile(allocations, 0.99), "ms", 5);
  Row("resident memory after 200 allocations", memory, "MiB", 30);
  return 0;
}

}  // namespace
}  // namespace railhead::device_plugin

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);  // the fake kubelet speaks its language
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s PATH-OF-RAILHEAD-DEVICE-PLUGIN\n", argv[0]);
    return 2;
  }
  return railhead::device_plugin::Run(argv[1]);
}
