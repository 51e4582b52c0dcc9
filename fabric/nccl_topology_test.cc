// SPDX-License-Identifier: Apache-2.0
#include "fabric/nccl_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fabric/affinity.h"
#include "fabric/root_files.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/machines.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric {
namespace {

const CpuModel kCpu = {"x86_64", "GenuineIntel", 6, 143};

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  Element* parent = nullptr;
  std::vector<std::unique_ptr<Element>> children;
};

// Reads as strictly as NCCL does: elements alone, attributes on one line with one blank between
// them, in quotes, no entities. Fails the test at anything else.
class Reader {
 public:
  explicit Reader(std::string text) : text_(std::move(text)) {}

  std::unique_ptr<Element> Read() {
    Blanks();
    std::unique_ptr<Element> root = ReadElement(nullptr);
    Blanks();
    EXPECT_EQ(at_, text_.size()) << "after the end: " << text_.substr(at_, 40);
    return root;
  }

 private:
  void Blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool Take(absl::string_view wanted) {
    if (!absl::StartsWith(absl::string_view(text_).substr(at_), wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  std::string Word() {
    const size_t begin = at_;
    while (at_ < text_.size() &&
           ((std::isalnum(static_cast<unsigned char>(text_[at_])) != 0) || text_[at_] == '_')) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }
  std::unique_ptr<Element> ReadElement(Element* parent) {
    auto element = std::make_unique<Element>();
    element->parent = parent;
    if (!Take("<")) {
      ADD_FAILURE() << "no element at " << text_.substr(at_, 40);
      at_ = text_.size();
      return element;
    }
    element->name = Word();
    while (Take(" ")) {
      const std::string name = Word();
      EXPECT_TRUE(Take("=\"")) << name;
      const size_t end = text_.find('"', at_);
      if (end == std::string::npos) {
        ADD_FAILURE() << "no end of " << name;
        at_ = text_.size();
        return element;
      }
      EXPECT_TRUE(element->attributes.emplace(name, text_.substr(at_, end - at_)).second) << name;
      at_ = end + 1;
    }
    if (Take("/>")) return element;
    EXPECT_TRUE(Take(">")) << text_.substr(at_, 40);
    Blanks();
    while (!Take(absl::StrCat("</", element->name, ">"))) {
      if (at_ >= text_.size()) {
        ADD_FAILURE() << element->name << " has no end";
        return element;
      }
      element->children.push_back(ReadElement(element.get()));
      Blanks();
    }
    return element;
  }

  const std::string text_;
  size_t at_ = 0;
};

// All elements of a name.
void Collect(const Element& element, const std::string& name, std::vector<const Element*>& found) {
  if (element.name == name) found.push_back(&element);
  for (const auto& child : element.children) Collect(*child, name, found);
}

std::vector<const Element*> All(const Element& root, const std::string& name) {
  std::vector<const Element*> found;
  Collect(root, name, found);
  return found;
}

const Element* PciOf(const Element& root, const std::string& address) {
  for (const Element* element : All(root, "pci")) {
    if (element->attributes.at("busid") == address) return element;
  }
  return nullptr;
}

std::vector<const Element*> Above(const Element* element) {
  std::vector<const Element*> above;
  for (element = element->parent; element->name == "pci"; element = element->parent) {
    above.push_back(element);
  }
  return above;
}

const Element* CpuOf(const Element* element) {
  while (element->name != "cpu") element = element->parent;
  return element;
}

// How near NCCL would say that two are, as far as the file tells.
std::string LevelIn(const Element* a, const Element* b) {
  const std::vector<const Element*> of_a = Above(a);
  const std::vector<const Element*> of_b = Above(b);
  if (!of_a.empty() && !of_b.empty() && of_a[0] == of_b[0]) return "PIX";
  for (const Element* bridge : of_a) {
    if (std::find(of_b.begin(), of_b.end(), bridge) != of_b.end()) return "PXB";
  }
  return CpuOf(a) == CpuOf(b) ? "one CPU" : "SYS";
}

std::string Expected(Level level) {
  switch (level) {
    case Level::kPix:
      return "PIX";
    case Level::kPxb:
      return "PXB";
    case Level::kPhb:
    case Level::kNode:
      return "one CPU";
    case Level::kSys:
      return "SYS";
  }
  return "";
}

std::string TopologyOf(const testing::SysfsTree& tree) {
  const absl::StatusOr<NodeInventory> inventory = ReadInventory(tree.root());
  const absl::StatusOr<RootFiles> files = RootFiles::Open(tree.root());
  EXPECT_TRUE(inventory.ok() && files.ok());
  return NcclTopology(*inventory, ReadPciAttributes(*files, *inventory), kCpu);
}

class MachineTopologyTest : public ::testing::TestWithParam<testing::Machine> {};

TEST_P(MachineTopologyTest, DevicesAreAsFarApartAsTheyAre) {
  testing::SysfsTree tree;
  Build(GetParam(), tree);
  const absl::StatusOr<NodeInventory> inventory = ReadInventory(tree.root());
  ASSERT_TRUE(inventory.ok());
  const std::unique_ptr<Element> root = Reader(TopologyOf(tree)).Read();
  ASSERT_EQ(root->name, "system");
  EXPECT_EQ(root->attributes.at("version"), "1");
  for (const Gpu& gpu : inventory->gpus) {
    const Element* of_gpu = PciOf(*root, gpu.pci_address);
    ASSERT_NE(of_gpu, nullptr) << gpu.pci_address;
    EXPECT_EQ(CpuOf(of_gpu)->attributes.at("numaid"), absl::StrCat(gpu.numa_node));
    for (const Hca& hca : inventory->hcas) {
      const Element* of_hca = PciOf(*root, hca.pci_address);
      ASSERT_NE(of_hca, nullptr) << hca.name;
      EXPECT_EQ(LevelIn(of_gpu, of_hca), Expected(LevelBetween(gpu, hca)))
          << gpu.pci_address << " " << hca.name;
    }
  }
}

// Without any of these NCCL ends with an error; and it has room for 256 elements, of which each GPU
// takes up to ten more.
TEST_P(MachineTopologyTest, NothingIsMissingThatNcclNeeds) {
  testing::SysfsTree tree;
  Build(GetParam(), tree);
  const std::unique_ptr<Element> root = Reader(TopologyOf(tree)).Read();
  size_t elements = 0;
  for (const char* name : {"system", "cpu", "pci", "nic", "net"})
    elements += All(*root, name).size();
  EXPECT_LE(elements, 120U);
  for (const Element* cpu : All(*root, "cpu")) {
    for (const char* name : {"numaid", "arch", "vendor", "familyid", "modelid"}) {
      EXPECT_TRUE(cpu->attributes.contains(name)) << name;
    }
  }
  std::set<std::string> addresses;
  for (const Element* pci : All(*root, "pci")) {
    for (const char* name : {"busid", "class", "link_speed", "link_width"}) {
      EXPECT_TRUE(pci->attributes.contains(name)) << name;
    }
    EXPECT_TRUE(addresses.insert(pci->attributes.at("busid")).second);
  }
}

TEST_P(MachineTopologyTest, EveryHcaIsFoundByItsName) {
  testing::SysfsTree tree;
  Build(GetParam(), tree);
  const std::unique_ptr<Element> root = Reader(TopologyOf(tree)).Read();
  std::map<std::string, std::string> found;
  for (const Element* net : All(*root, "net")) {
    EXPECT_EQ(net->parent->name, "nic");
    found[net->attributes.at("name")] = net->parent->parent->attributes.at("busid");
  }
  std::map<std::string, std::string> expected;
  for (const testing::PciDevice& device : GetParam().devices) {
    if (!device.hca.empty()) expected[device.hca] = device.path.substr(device.path.rfind('/') + 1);
  }
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(All, MachineTopologyTest, ::testing::ValuesIn(testing::Machines()));

// A GPU and a NIC at one switch, as sysfs tells of them.
NodeInventory OneSwitch() {
  const std::string upstream = "pci0000:15/0000:15:01.0/0000:16:00.0";
  NodeInventory inventory;
  inventory.gpus.push_back(
      {"10de", "0000:1b:00.0", 0, ParsePciPath(upstream + "/0000:17:01.0/0000:1b:00.0")});
  Hca hca;
  hca.name = "mlx5_0";
  hca.pci_address = "0000:18:00.0";
  hca.numa_node = 0;
  hca.path = ParsePciPath(upstream + "/0000:17:00.0/0000:18:00.0");
  inventory.hcas.push_back(hca);
  return inventory;
}

TEST(NcclTopologyTest, IsWrittenAsNcclReadsIt) {
  const PciAttributesMap attributes = {
      {"0000:15:01.0", {.max_link_speed = "32.0 GT/s PCIe", .max_link_width = 16}},
      {"0000:16:00.0", {0x060400, 0x1000, 0xc030, 0x1000, 0x100b, "32.0 GT/s PCIe", 16}},
      {"0000:17:00.0", {.max_link_speed = "16.0 GT/s PCIe", .max_link_width = 16}},
      {"0000:18:00.0", {0x020700, 0x15b3, 0x1021, {}, {}, "32.0 GT/s PCIe", 8}},
      // The port is silent: what the card says counts.
      {"0000:1b:00.0", {0x030200, 0x10de, 0x2330, {}, {}, "32.0 GT/s PCIe", 16}},
  };
  EXPECT_EQ(NcclTopology(OneSwitch(), attributes, kCpu), R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:16:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x100b" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:18:00.0" class="0x020700" vendor="0x15b3" device="0x1021" link_speed="16.0 GT/s PCIe" link_width="8">
        <nic>
          <net name="mlx5_0"/>
        </nic>
      </pci>
      <pci busid="0000:1b:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
</system>
)");
}

TEST(NcclTopologyTest, WhatSysfsHidesIsLeftToNccl) {
  const std::unique_ptr<Element> root =
      Reader(NcclTopology(OneSwitch(), {}, {.arch = "arm64"})).Read();
  EXPECT_FALSE(All(*root, "cpu")[0]->attributes.contains("vendor"));
  EXPECT_EQ(PciOf(*root, "0000:16:00.0")->attributes.at("class"), "0x060400");
  EXPECT_EQ(PciOf(*root, "0000:18:00.0")->attributes.at("class"), "0x020000");
  EXPECT_EQ(PciOf(*root, "0000:1b:00.0")->attributes.at("class"), "0x030200");
  EXPECT_EQ(PciOf(*root, "0000:1b:00.0")->attributes.at("link_speed"), "");
  EXPECT_EQ(PciOf(*root, "0000:1b:00.0")->attributes.at("link_width"), "0");
}

TEST(NcclTopologyTest, OddSpeedsAndNamesDoNoHarm) {
  NodeInventory inventory = OneSwitch();
  inventory.hcas[0].name = "a\"<b>&";
  const PciAttributesMap attributes = {
      {"0000:18:00.0", {.max_link_speed = "Unknown speed"}},
      {"0000:1b:00.0", {.max_link_speed = "\"/><x GT/s"}},
  };
  const std::unique_ptr<Element> root = Reader(NcclTopology(inventory, attributes, kCpu)).Read();
  EXPECT_EQ(All(*root, "net")[0]->attributes.at("name"), "a&quot;&lt;b&gt;&amp;");
  EXPECT_EQ(PciOf(*root, "0000:18:00.0")->attributes.at("link_speed"), "");
  EXPECT_EQ(PciOf(*root, "0000:1b:00.0")->attributes.at("link_speed"), "");
}

TEST(NcclTopologyTest, WhatHasNoKnownPlaceIsLeftOut) {
  NodeInventory inventory = OneSwitch();
  inventory.gpus[0].path = {};
  inventory.hcas[0].path = {};
  EXPECT_EQ(NcclTopology(inventory, {}, kCpu), "<system version=\"1\">\n</system>\n");
  inventory = OneSwitch();
  inventory.hcas[0].offered = false;  // a side of another device
  EXPECT_EQ(NcclTopology(inventory, {}, kCpu).find("net"), std::string::npos);
}

TEST(PciAttributesTest, AreReadForTheWholeWay) {
  testing::SysfsTree tree;
  Build(testing::Machines()[1], tree);
  const std::string gpu =
      "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:1b:00.0";
  tree.Write(gpu + "/max_link_speed", "32.0 GT/s PCIe\n");
  tree.Write(gpu + "/max_link_width", "16\n");
  tree.Write(gpu + "/subsystem_vendor", "0x10de\n");
  tree.Write("/sys/devices/pci0000:15/0000:15:01.0/max_link_width", "255\n");
  const absl::StatusOr<NodeInventory> inventory = ReadInventory(tree.root());
  const absl::StatusOr<RootFiles> files = RootFiles::Open(tree.root());
  ASSERT_TRUE(inventory.ok() && files.ok());
  const PciAttributesMap attributes = ReadPciAttributes(*files, *inventory);
  EXPECT_EQ(attributes.at("0000:1b:00.0"),
            (PciAttributes{0x030200, 0x10de, 0x1021, 0x10de, {}, "32.0 GT/s PCIe", 16}));
  EXPECT_EQ(attributes.at("0000:15:01.0").max_link_width, 0);  // not known
  EXPECT_EQ(attributes.at("0000:16:00.0").pci_class, 0x060400U);
}

TEST(CpuModelTest, IsKnownOfThisMachine) {
  const CpuModel cpu = ThisCpuModel();
  EXPECT_FALSE(cpu.arch.empty());
  if (cpu.arch == "x86_64") {
    EXPECT_EQ(cpu.vendor.size(), 12U);
    EXPECT_GT(cpu.family, 0);
  }
}

}  // namespace
}  // namespace railhead::fabric
