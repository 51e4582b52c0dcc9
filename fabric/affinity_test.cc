// SPDX-License-Identifier: Apache-2.0
#include "fabric/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "fabric/inventory.h"
#include "fabric/inventory_json.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/machines.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Hca HcaAt(const std::string& path, int numa) {
  Hca hca;
  hca.path = ParsePciPath(path);
  hca.numa_node = numa;
  return hca;
}

Gpu GpuAt(const std::string& path, int numa) { return {"10de", "", numa, ParsePciPath(path)}; }

TEST(LevelTest, IsThatOfNccl) {
  const std::string port = "pci0000:00/0000:00:01.0";
  const std::string upstream = port + "/0000:01:00.0";
  const Gpu gpu = GpuAt(upstream + "/0000:02:00.0/0000:03:00.0", 0);
  const auto level = [&gpu](const std::string& path, int numa) {
    return LevelBetween(gpu, HcaAt(path, numa));
  };
  EXPECT_EQ(level(upstream + "/0000:02:01.0/0000:04:00.0", 0), Level::kPix);
  EXPECT_EQ(level(upstream + "/0000:02:02.0", 0), Level::kPix);  // on the switch's own bus
  EXPECT_EQ(level(upstream + "/0000:02:01.0/0000:04:00.0/0000:05:00.0/0000:06:00.0", 0),
            Level::kPxb);
  EXPECT_EQ(level(port + "/0000:01:00.1/0000:08:00.0/0000:09:00.0", 0), Level::kPxb);
  EXPECT_EQ(level("pci0000:00/0000:00:02.0/0000:0a:00.0", 0), Level::kPhb);
  EXPECT_EQ(level("pci0000:40/0000:40:01.0/0000:41:00.0", 0), Level::kNode);
  EXPECT_EQ(level("pci0000:80/0000:80:01.0/0000:81:00.0", 1), Level::kSys);
  EXPECT_EQ(level("pci0000:80/0000:80:01.0/0000:81:00.0", -1), Level::kSys);
  // Functions of one card, behind a root port.
  EXPECT_EQ(LevelBetween(GpuAt(port + "/0000:01:00.0", 0), HcaAt(port + "/0000:01:00.1", 0)),
            Level::kPix);
}

TEST(LevelTest, WithoutAPathTheNumaNodeDecides) {
  EXPECT_EQ(LevelBetween(GpuAt("", 1), HcaAt("pci0000:00/0000:00:01.0", 1)), Level::kNode);
  EXPECT_EQ(LevelBetween(GpuAt("", 0), HcaAt("pci0000:00/0000:00:01.0", 1)), Level::kSys);
  EXPECT_EQ(LevelBetween(GpuAt("", -1), HcaAt("", -1)), Level::kSys);
}

TEST(NearestTest, LooksAtUsableDevicesOnly) {
  NodeInventory inventory;
  inventory.gpus = {GpuAt("pci0000:00/0000:00:01.0/0000:01:00.0", 0)};
  inventory.hcas = {HcaAt("pci0000:00/0000:00:01.0/0000:01:00.1", 0),
                    HcaAt("pci0000:00/0000:00:02.0/0000:02:00.0", 0),
                    HcaAt("pci0000:00/0000:00:03.0/0000:03:00.0", 0)};
  EXPECT_THAT(NearestHcas(inventory, inventory.gpus[0]), ElementsAre(0));
  inventory.hcas[0].health.Set(Stage::kRules, "port 1 is DOWN");
  EXPECT_THAT(NearestHcas(inventory, inventory.gpus[0]), ElementsAre(1, 2));
  inventory.hcas[1].health = inventory.hcas[2].health = inventory.hcas[0].health;
  EXPECT_THAT(NearestHcas(inventory, inventory.gpus[0]), IsEmpty());
}

// The same from the tree's files alone: bridges as a graph in which the ports of one switch are one
// vertex, and the shortest way through it.
class Graph {
 public:
  explicit Graph(const std::string& root) : root_(root) {
    for (const auto& entry : std::filesystem::directory_iterator(root_ + "/sys/bus/pci/devices")) {
      const std::filesystem::path real = std::filesystem::canonical(entry.path());
      Join(Vertex(real), Vertex(real.parent_path()));
    }
  }

  std::string Level(const std::string& gpu, const std::string& nic) const {
    const std::string a = Vertex(Real(gpu));
    const std::string b = Vertex(Real(nic));
    std::map<std::string, std::string> from = {{a, ""}};
    std::queue<std::string> open({a});
    while (!open.empty()) {
      const std::string at = open.front();
      open.pop();
      const auto ways = edges_.find(at);
      if (ways == edges_.end()) continue;
      for (const std::string& next : ways->second) {
        if (from.emplace(next, at).second) open.push(next);
      }
    }
    if (!from.contains(b)) return Numa(gpu) == Numa(nic) ? "NODE" : "SYS";
    int bridges = 0;
    for (std::string at = from.at(b); at != a; at = from.at(at)) {
      if (absl::StartsWith(std::filesystem::path(at).filename().string(), "pci")) return "PHB";
      ++bridges;
    }
    return bridges <= 1 ? "PIX" : "PXB";
  }

 private:
  std::filesystem::path Real(const std::string& address) const {
    return std::filesystem::canonical(root_ + "/sys/bus/pci/devices/" + address);
  }
  std::string Numa(const std::string& address) const {
    std::string text;
    std::ifstream(Real(address) / "numa_node") >> text;
    return text;
  }
  static bool IsBridge(const std::filesystem::path& folder) {
    std::string text;
    std::ifstream(folder / "class") >> text;
    return text == "0x060400";
  }
  // A downstream port is the same vertex as the upstream port above it, which hangs at a port
  // itself.
  static std::string Vertex(const std::filesystem::path& folder) {
    size_t bridges_above = 0;
    for (auto above = folder.parent_path(); IsBridge(above); above = above.parent_path()) {
      ++bridges_above;
    }
    const bool downstream = IsBridge(folder) && bridges_above >= 2 && bridges_above % 2 == 0;
    return downstream ? folder.parent_path() : folder;
  }
  void Join(const std::string& a, const std::string& b) {
    if (a == b) return;
    edges_[a].insert(b);
    edges_[b].insert(a);
  }

  std::string root_;
  std::map<std::string, std::set<std::string>> edges_;
};

class MachineTest : public ::testing::TestWithParam<testing::Machine> {};

TEST_P(MachineTest, AffinityIsThatOfBruteForce) {
  testing::SysfsTree tree;
  testing::Build(GetParam(), tree);
  const absl::StatusOr<NodeInventory> inventory = ReadInventory(tree.root());
  ASSERT_TRUE(inventory.ok()) << inventory.status();

  std::set<std::string> gpus;
  size_t nics = 0;
  for (const testing::PciDevice& device : GetParam().devices) {
    if (device.is_gpu) gpus.insert(device.path.substr(device.path.rfind('/') + 1));
    if (!device.hca.empty()) ++nics;
  }
  std::set<std::string> found;
  for (const Gpu& gpu : inventory->gpus) found.insert(gpu.pci_address);
  EXPECT_EQ(found, gpus);
  EXPECT_EQ(inventory->hcas.size(), nics);

  const Graph graph(tree.root());
  const std::vector<std::string> order = {"PIX", "PXB", "PHB", "NODE", "SYS"};
  for (const Gpu& gpu : inventory->gpus) {
    size_t best = order.size();
    std::map<size_t, std::vector<size_t>> by_level;
    for (size_t i = 0; i < inventory->hcas.size(); ++i) {
      const Hca& hca = inventory->hcas[i];
      const std::string expected = graph.Level(gpu.pci_address, hca.pci_address);
      EXPECT_EQ(ToString(LevelBetween(gpu, hca)), expected) << gpu.pci_address << " " << hca.name;
      const auto level =
          static_cast<size_t>(std::find(order.begin(), order.end(), expected) - order.begin());
      by_level[level].push_back(i);
      best = std::min(best, level);
    }
    EXPECT_EQ(NearestHcas(*inventory, gpu), by_level[best]) << gpu.pci_address;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MachineTest, ::testing::ValuesIn(testing::Machines()),
                         [](const auto& machine) {
                           std::string name;
                           for (const char c : machine.param.name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
                           }
                           return name;
                         });

TEST(JsonTest, TellsGpusAffinityAndNearest) {
  testing::SysfsTree tree;
  testing::Build(testing::Machines()[1], tree);
  const auto json = nlohmann::json::parse(ToJson(ReadInventory(tree.root()).value()));
  EXPECT_EQ(json["gpus"].size(), 8U);
  EXPECT_EQ(json["gpus"][0],
            (nlohmann::json{{"vendor", "10de"}, {"pciAddress", "0000:1b:00.0"}, {"numaNode", 0}}));
  EXPECT_EQ(json["affinity"].size(), 64U);
  EXPECT_EQ(json["affinity"][0],
            (nlohmann::json{{"gpu", "0000:1b:00.0"}, {"hca", "mlx5_0"}, {"level", "PIX"}}));
  EXPECT_EQ(json["nearest"][7], (nlohmann::json{{"gpu", "0000:df:00.0"}, {"hcas", {"mlx5_7"}}}));
}

// What people know of these machines, so that both ways of counting are not wrong alike.
TEST(MachinesTest, AreAsTheirManualsSay) {
  const std::map<std::string, std::string> nearest = {{"DGX A100", "PXB"},
                                                      {"DGX H100", "PIX"},
                                                      {"GB200", "NODE"},
                                                      {"MI300X", "PIX"},
                                                      {"virtual machine", "PHB"}};
  for (const testing::Machine& machine : testing::Machines()) {
    const auto expected = nearest.find(machine.name);
    if (expected == nearest.end()) continue;
    testing::SysfsTree tree;
    testing::Build(machine, tree);
    const absl::StatusOr<NodeInventory> inventory = ReadInventory(tree.root());
    ASSERT_TRUE(inventory.ok());
    for (const Gpu& gpu : inventory->gpus) {
      const std::vector<size_t> places = NearestHcas(*inventory, gpu);
      ASSERT_FALSE(places.empty());
      EXPECT_EQ(ToString(LevelBetween(gpu, inventory->hcas[places[0]])), expected->second)
          << machine.name;
    }
  }
}

}  // namespace
}  // namespace railhead::fabric
