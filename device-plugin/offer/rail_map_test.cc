// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/rail_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device-plugin/config/config.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/holdings/holdings.h"
#include "device-plugin/offer/assignment.h"
#include "device-plugin/offer/renumbering.h"
#include "fabric/hca_role.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"
#include "fabric/pod_rails.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

using ::testing::HasSubstr;

const Machine kMachine = {"node-1", "board-1"};

fabric::Hca MakeHca(const std::string& name, const std::string& pci,
                    const std::string& netdev = "") {
  fabric::Hca hca;
  hca.name = name;
  hca.pci_address = pci;
  hca.netdev = netdev;
  hca.vendor = "15b3";
  hca.ports = {{1, "ACTIVE", "Ethernet", 400, "LinkUp"}};
  hca.char_devices = {"/dev/infiniband/uverbs0"};
  return hca;
}

fabric::Hca VirtualFunction(const std::string& name, const std::string& pci,
                            const std::string& physical) {
  fabric::Hca hca = MakeHca(name, pci);
  hca.physical_function = physical;
  return hca;
}

class RailMapTest : public ::testing::Test {
 protected:
  // Rail, id and name of each, "!" where it is not usable, and "-" where it is no rail.
  std::string Look(std::vector<fabric::Hca> hcas) {
    inventory_.hcas = std::move(hcas);
    Recognize(holdings_, map_, inventory_);
    return absl::StrJoin(inventory_.hcas, " ", [](std::string* out, const fabric::Hca& hca) {
      absl::StrAppend(out, hca.offered ? absl::StrCat(hca.rail) : "-", ":", DeviceId(hca), "=",
                      hca.name, hca.health.usable() ? "" : "!");
    });
  }

  void Hold(std::set<std::string> ids) {
    holdings_.bound = ids;
    holdings_.by_resource["rdma/hca"] = std::move(ids);
  }

  RailMap map_;
  fabric::NodeInventory inventory_;
  Holdings holdings_ = {{}, {}, /*complete=*/true};
};

const std::string kPciA = "0000:01:00.0";
const std::string kPciB = "0000:02:00.0";
const std::string kPciC = "0000:03:00.0";

TEST_F(RailMapTest, NamesMayBeExchanged) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciB)});
  EXPECT_EQ(Look({MakeHca("b", kPciA), MakeHca("a", kPciB)}),
            "0:a-0000_01_00_0=b 1:b-0000_02_00_0=a");
}

TEST_F(RailMapTest, WhatIsMissingKeepsItsPlace) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciB)});
  EXPECT_EQ(Look({MakeHca("b", kPciB)}), "0:a-0000_01_00_0=a! 1:b-0000_02_00_0=b");
  EXPECT_THAT(inventory_.hcas[0].health.reason(), HasSubstr("has disappeared from"));
  EXPECT_TRUE(inventory_.hcas[0].char_devices.empty());
  EXPECT_EQ(inventory_.hcas[0].ports[0].state, "UNKNOWN");
  // Also for a new agent, which knows the same of it.
  absl::StatusOr<RailMap> map = ParseRailMap(ToJson(map_, kMachine), kMachine);
  ASSERT_TRUE(map.ok()) << map.status();
  map_ = *std::move(map);
  EXPECT_EQ(Look({MakeHca("b", kPciB)}), "0:a-0000_01_00_0=a! 1:b-0000_02_00_0=b");
  EXPECT_EQ(inventory_.hcas[0].vendor, "15b3");
  EXPECT_EQ(inventory_.hcas[0].ports[0].link_layer, "Ethernet");
}

TEST_F(RailMapTest, ANewOneTakesItsPlaceWhenNothingIsHeld) {
  Look({MakeHca("a", kPciA), MakeHca("c", kPciC)});
  Hold({"c-0000_03_00_0"});
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("b", kPciB), MakeHca("c", kPciC)}),
            "0:a-0000_01_00_0=a 1:c-0000_03_00_0=c 2:b-0000_02_00_0=b");
  Hold({});
  holdings_.complete = false;
  EXPECT_THAT(Look({MakeHca("a", kPciA), MakeHca("b", kPciB), MakeHca("c", kPciC)}),
              HasSubstr("2:b-"));
  holdings_.complete = true;
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("b", kPciB), MakeHca("c", kPciC)}),
            "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b 2:c-0000_03_00_0=c");
}

TEST_F(RailMapTest, SeveralDevicesOfAFunctionAreToldApartByTheirNames) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciA)});
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("c", kPciA)}),
            "0:a-0000_01_00_0=a 1:b-0000_01_00_0=c");
  // The old name of one is the new one of another.
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("b", kPciA), MakeHca("c", kPciA)}),
            "0:a-0000_01_00_0=a 1:b-0000_01_00_0=c 2:b.2-0000_01_00_0=b");
}

TEST_F(RailMapTest, WhatMayBeInAPodUnderAnotherNameIsGivenToNobody) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciA)});
  Hold({"a-0000_01_00_0"});
  const std::vector<fabric::Hca> renamed = {MakeHca("c", kPciA), MakeHca("d", kPciA)};
  EXPECT_EQ(Look(renamed), "0:a-0000_01_00_0=a! 1:c-0000_01_00_0=c! 2:d-0000_01_00_0=d!");
  EXPECT_THAT(inventory_.hcas[1].health.reason(), HasSubstr("a-0000_01_00_0"));
  map_ = ParseRailMap(ToJson(map_, kMachine), kMachine).value();
  EXPECT_THAT(Look(renamed), HasSubstr("=c! 2:d-0000_01_00_0=d!"));
  Hold({});
  EXPECT_EQ(Look(renamed), "1:c-0000_01_00_0=c 2:d-0000_01_00_0=d");
}

TEST_F(RailMapTest, ASoftwareDeviceThatIsRenamedHasNoSecondOwner) {
  Look({MakeHca("siw0", "", "eth0"), MakeHca("siw1", "", "eth1")});
  Hold({"siw0"});
  EXPECT_EQ(Look({MakeHca("siw7", "", "eth0"), MakeHca("siw1", "", "eth1")}),
            "0:siw0=siw7 1:siw1=siw1");
  // With its interface in the pod.
  for (const char* netdev : {"", "net1"}) {
    EXPECT_EQ(Look({MakeHca("siw8", "", netdev), MakeHca("siw1", "", "eth1")}),
              "0:siw0=siw7! 1:siw1=siw1 2:siw8=siw8!");
    EXPECT_THAT(inventory_.hcas[2].health.reason(), HasSubstr("a pod may hold this one as siw0"));
  }
  Hold({});
  EXPECT_EQ(Look({MakeHca("siw8", "", "eth0"), MakeHca("siw1", "", "eth1")}),
            "1:siw1=siw1 2:siw8=siw8")
      << "the others stay where they are";
}

TEST_F(RailMapTest, AVirtualFunctionIsNoRailBesideItsPhysicalOne) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciB)});
  EXPECT_EQ(
      Look({MakeHca("a", kPciA), VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)}),
      "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b -:v-0000_01_00_1=v!");
  // Also while its driver is loaded anew.
  EXPECT_THAT(Look({VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)}),
              HasSubstr("-:v-"));
}

TEST_F(RailMapTest, VirtualFunctionsMayBeChosenInPlaceOfTheirPhysicalOne) {
  const auto look = [this](bool chosen) {
    std::vector<fabric::Hca> hcas = {
        MakeHca("a", kPciA), VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)};
    hcas[1].role = fabric::HcaRole::kVirtualFunction;
    fabric::ChooseRails(hcas, [chosen](const fabric::Hca&) { return chosen; });
    return Look(hcas);
  };
  EXPECT_EQ(look(false), "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b -:v-0000_01_00_1=v!");
  EXPECT_EQ(look(true), "0:v-0000_01_00_1=v 1:b-0000_02_00_0=b -:a-0000_01_00_0=a!");
  EXPECT_EQ(look(true), "0:v-0000_01_00_1=v 1:b-0000_02_00_0=b -:a-0000_01_00_0=a!") << "no ghost";
  Hold({"v-0000_01_00_1"});
  map_ = ParseRailMap(ToJson(map_, kMachine), kMachine).value();
  EXPECT_EQ(Look({MakeHca("b", kPciB)}), "0:v-0000_01_00_1=v! 1:b-0000_02_00_0=b");
  EXPECT_EQ(inventory_.hcas[0].role, fabric::HcaRole::kVirtualFunction) << "also over a restart";
  // The pod may have taken it out of the host's sight.
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("b", kPciB)}),
            "0:v-0000_01_00_1=v! 1:b-0000_02_00_0=b -:a-0000_01_00_0=a!");
  EXPECT_THAT(inventory_.hcas[2].health.reason(), HasSubstr("v (0000:01:00.1, in a pod)"));
  Hold({});
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("b", kPciB)}),
            "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b");
  EXPECT_EQ(look(false), "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b -:v-0000_01_00_1=v!");
}

TEST_F(RailMapTest, APhysicalFunctionThatGoesIntoSwitchdevModeIsNotMissing) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciB)});
  for (int i = 0; i < 2; ++i) {
    fabric::Hca pf = MakeHca("a", kPciA);
    pf.role = fabric::HcaRole::kSwitchdevFunction;
    pf.offered = false;
    Look({pf, VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)});
  }
  EXPECT_EQ(absl::StrCat(inventory_.hcas[0].name, inventory_.hcas[1].name), "vb");
  EXPECT_EQ(map_.hcas.size(), 2U);
}

// A map of an agent that could not read what it is.
TEST_F(RailMapTest, AFunctionThatManagesSwitchesIsNotMissing) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciB)});
  fabric::Hca manager = MakeHca("a", kPciA);
  manager.role = fabric::HcaRole::kSwitchManagement;
  manager.offered = false;
  manager.health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  EXPECT_EQ(Look({manager, MakeHca("b", kPciB)}), "1:b-0000_02_00_0=b -:a-0000_01_00_0=a!");
}

// Only the place of an HCA that hangs is known when the agent starts.
TEST_F(RailMapTest, AnHcaThatHangsIsWhatItWas) {
  const fabric::testing::SysfsTree tree;
  fabric::testing::FakeHca fake;
  fake.name = "a";
  fake.pci = kPciA;
  tree.AddHca(fake);
  fabric::Hca bond = MakeHca("a", kPciA, "bond0");
  bond.role = fabric::HcaRole::kBond;
  Look({bond, MakeHca("b", kPciB)});
  const fabric::Hca hung =
      fabric::ReadInventory(tree.root(), {}, nullptr, {}, {{"a", {}}}).value().hcas[0];
  ASSERT_TRUE(hung.health.Has(fabric::Stage::kHang));
  EXPECT_EQ(Look({hung, MakeHca("b", kPciB)}), "0:a-0000_01_00_0=a! 1:b-0000_02_00_0=b");
  EXPECT_EQ(inventory_.hcas[0].netdev, "bond0");
  EXPECT_EQ(inventory_.hcas[0].role, fabric::HcaRole::kBond);
  EXPECT_EQ(inventory_.hcas[0].ports.at(0).link_layer, "Ethernet");
  // It may vanish as well.
  EXPECT_EQ(Look({MakeHca("b", kPciB)}), "0:a-0000_01_00_0=a! 1:b-0000_02_00_0=b");
  EXPECT_THAT(inventory_.hcas[0].health.reason(), HasSubstr("has disappeared from"));
}

TEST_F(RailMapTest, TheSixtyFifthHcaIsNoRail) {
  std::vector<fabric::Hca> hcas;
  for (int i = 0; i <= fabric::kHighestRail + 1; ++i) {
    hcas.push_back(MakeHca(absl::StrCat("efa", i), absl::StrCat("0000:", 10 + i, ":00.0")));
  }
  Look(hcas);
  EXPECT_EQ(inventory_.hcas.back().rail, -1);
  EXPECT_FALSE(inventory_.hcas.back().offered);
  EXPECT_THAT(inventory_.hcas.back().health.reason(), HasSubstr("more than 64 rails"));
  EXPECT_TRUE(ParseRailMap(ToJson(map_, kMachine), kMachine).ok());
}

TEST_F(RailMapTest, VirtualFunctionsAloneAreRailsWhileTheyAreThere) {
  EXPECT_EQ(Look({VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)}),
            "0:v-0000_01_00_1=v 1:b-0000_02_00_0=b");
  Hold({"v-0000_01_00_1"});
  EXPECT_EQ(Look({MakeHca("b", kPciB)}), "0:v-0000_01_00_1=v! 1:b-0000_02_00_0=b");
  // Its physical function gets a driver while a pod holds it.
  EXPECT_EQ(
      Look({MakeHca("a", kPciA), VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)}),
      "0:v-0000_01_00_1=v 1:b-0000_02_00_0=b 2:a-0000_01_00_0=a");
  Hold({});
  EXPECT_EQ(
      Look({MakeHca("a", kPciA), VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)}),
      "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b -:v-0000_01_00_1=v!");
}

TEST_F(RailMapTest, TheHostsNameOfAnInterfaceStaysWhileAPodHasIt) {
  Look({MakeHca("a", kPciA, "eth0")});
  Hold({"a-0000_01_00_0"});
  for (const char* netdev : {"", "net1"}) {  // in the pod; and back, not yet renamed
    Look({MakeHca("a", kPciA, netdev)});
    EXPECT_EQ(inventory_.hcas[0].netdev, "eth0");
  }
  Hold({});
  Look({MakeHca("a", kPciA, "")});
  EXPECT_EQ(inventory_.hcas[0].netdev, "eth0");
  Look({MakeHca("a", kPciA, "ens1f0")});
  EXPECT_EQ(inventory_.hcas[0].netdev, "ens1f0");
}

TEST(RailMapFile, WhatIsNoMapOfThisMachineIsRefusedWithTheReason) {
  RailMap map;
  fabric::NodeInventory inventory;
  inventory.hcas = {MakeHca("a", kPciA), MakeHca("siw0", "")};
  Recognize({}, map, inventory);
  const std::string text = ToJson(map, kMachine);
  ASSERT_TRUE(ParseRailMap(text, kMachine).ok());
  EXPECT_EQ(ToJson(*ParseRailMap(text, kMachine), kMachine), text);
  EXPECT_TRUE(ParseRailMap(text, {"node-1", ""}).ok()) << "the board cannot be read";
  EXPECT_THAT(std::string(ParseRailMap(text, {"node-2", "board-1"}).status().message()),
              HasSubstr("another machine"));
  EXPECT_THAT(std::string(ParseRailMap(text, {"node-1", "board-2"}).status().message()),
              HasSubstr("board-2"));
  for (size_t end = 0; end + 1 < text.size(); ++end) {
    EXPECT_FALSE(ParseRailMap(text.substr(0, end), kMachine).ok()) << end;
  }
  std::mt19937 random(5);
  for (int i = 0; i < 5000; ++i) {
    std::string torn = text;
    torn[random() % torn.size()] = static_cast<char>(random());
    const absl::StatusOr<RailMap> read = ParseRailMap(torn, kMachine);
    if (!read.ok()) continue;
    std::set<int> rails;
    for (const fabric::Hca& hca : read->hcas) EXPECT_TRUE(rails.insert(hca.rail).second);
  }
}

// A node with its kubelet, and the agent's own functions. Everything may happen in any order.
class History {
 public:
  explicit History(unsigned seed) : random_(seed) {
    for (int i = 0; i < 4; ++i) {
      nics_.push_back({absl::StrCat("0000:0", i + 1, ":00.0"), absl::StrCat("mlx5_", i),
                       absl::StrCat("eth", i)});
    }
    // The last function has two devices.
    nics_.push_back({kTwins, "twin0", "eth8"});
    nics_.push_back({kTwins, "twin1", "eth9"});
    nics_.push_back({"", "siw0", "eth10"});
    for (size_t i = 0; i < nics_.size(); ++i) nics_[i].uverbs = static_cast<int>(i);
    Scan();
    SettleKubelet();
    Scan();
  }

  void Step() {
    switch (random_() % 15) {
      case 0:
        Rename();
        break;
      case 1:
        for (Nic& nic : nics_) nic.present = nic.present && random_() % 3 != 0;
        break;
      case 2:
        for (Nic& nic : nics_) nic.present = true;
        break;
      case 3:
        MakeOrRemoveVirtualFunction();
        break;
      case 4:
        MoveInterface();
        break;
      case 5:
        known_.clear();
        young_ = true;
        break;
      case 6:
        if (!pods_.empty()) known_.insert(AnyPod());
        break;
      case 7:
        SettleKubelet();
        break;
      case 8:
        RestartAgent();
        break;
      case 9:
        if (!pods_.empty()) EndPod(AnyPod());
        break;
      case 10:
      case 11:
        Renumber();
        break;
      case 12:
        if (!pods_.empty()) RestartContainer(AnyPod());
        break;
      default:
        StartPod();
    }
    Scan();
  }

  // Everything is there, and nobody holds anything.
  void ComeToRest() {
    while (!pods_.empty()) EndPod(pods_.begin()->first);
    nics_.erase(std::remove_if(nics_.begin(), nics_.end(),
                               [](const Nic& nic) { return !nic.physical.empty(); }),
                nics_.end());
    for (Nic& nic : nics_) nic.present = true;
    SettleKubelet();
    Scan();
    EXPECT_EQ(map_.hcas.size(), nics_.size());
    EXPECT_TRUE(map_.may_be.empty());
    for (const Device& device : devices_)
      EXPECT_TRUE(device.hca.health.usable()) << device.hca.health.reason();
  }

  int started() const { return started_; }
  int restarted() const { return restarted_; }
  int refused() const { return refused_; }
  int told() const { return told_; }

 private:
  struct Nic {
    std::string pci;
    std::string name;
    std::string netdev;
    std::string physical = "";
    bool present = true;
    int owner = -1;                    // the pod that has it
    int uverbs = -1;                   // number of its device node
    std::string seen_netdev = netdev;  // what the host sees now
  };
  struct Pod {
    std::set<std::string> ids;
    std::vector<std::pair<std::string, std::string>> file;  // rails.json: names and addresses
    std::vector<fabric::PodRail> rails;                     // the same file
    bool runs = true;                                       // its container
  };

  static constexpr char kTwins[] = "0000:0f:00.0";

  size_t Any(size_t count) { return random_() % count; }
  int AnyPod() {
    auto pod = pods_.begin();
    std::advance(pod, static_cast<std::ptrdiff_t>(Any(pods_.size())));
    return pod->first;
  }

  std::string FreeName() {
    while (true) {
      // Few, so that old names come back for other NICs.
      std::string name = absl::StrCat(random_() % 2 == 0 ? "mlx5_" : "rocep", random_() % 8);
      if (std::none_of(nics_.begin(), nics_.end(),
                       [&name](const Nic& nic) { return nic.name == name; })) {
        return name;
      }
    }
  }

  void Rename() {
    const size_t count = 1 + Any(nics_.size());
    for (size_t i = 0; i < count; ++i) {
      Nic& nic = nics_[Any(nics_.size())];
      // Where names alone tell devices apart, they do not take each other's.
      nic.name = nic.pci == kTwins ? absl::StrCat("twin", next_name_++)
                 : nic.pci.empty() ? absl::StrCat("siw", next_name_++)
                                   : FreeName();
    }
  }

  static std::string NodeOf(const Nic& nic) {
    return absl::StrCat("/dev/infiniband/uverbs", nic.uverbs);
  }

  // The driver finds the NICs in another order.
  void Renumber() {
    std::vector<int> numbers;
    for (const Nic& nic : nics_) numbers.push_back(nic.uverbs);
    if (random_() % 2 == 0) {
      std::shuffle(numbers.begin(), numbers.end(), random_);
    } else {
      std::swap(numbers[Any(numbers.size())], numbers[Any(numbers.size())]);
    }
    for (size_t i = 0; i < nics_.size(); ++i) nics_[i].uverbs = numbers[i];
  }

  // Kubelet gives it the device nodes of its admission, if the agent agrees.
  void RestartContainer(int number) {
    Pod& pod = pods_.at(number);
    ++restarted_;
    const Grant grant{absl::StrCat(number),
                      {"", "", "main", {{"rdma/hca", {pod.ids.begin(), pod.ids.end()}}}},
                      {},
                      pod.rails};
    pod.runs = !FindRenumbering(grant, inventory_).has_value();
    if (!pod.runs) ++refused_;
  }

  // No container that runs can open a NIC that is not its own, unless the agent reports it and
  // withholds the NIC. `renumbered`: as reported.
  void CheckDeviceNodes(const std::vector<Renumbering>& renumbered) {
    for (const auto& [number, pod] : pods_) {
      if (!pod.runs) continue;
      for (const Nic& nic : nics_) {
        if (!nic.present || nic.owner == number) continue;
        const bool opens =
            std::any_of(pod.rails.begin(), pod.rails.end(), [&nic](const fabric::PodRail& rail) {
              return rail.char_devices.front() == NodeOf(nic);
            });
        if (!opens) continue;
        ++told_;
        const auto hca = std::find_if(inventory_.hcas.begin(), inventory_.hcas.end(),
                                      [&nic](const fabric::Hca& candidate) {
                                        return candidate.present && candidate.name == nic.name;
                                      });
        ASSERT_NE(hca, inventory_.hcas.end());
        // The rail map reports that a pod may have it.
        if (hca->health.Has(fabric::Stage::kIdentity)) continue;
        EXPECT_TRUE(
            std::any_of(renumbered.begin(), renumbered.end(),
                        [&](const Renumbering& one) { return one.hcas.contains(DeviceId(*hca)); }))
            << "pod " << number << " can open " << DeviceId(*hca) << ", and that is not reported";
        EXPECT_FALSE(hca->health.usable())
            << DeviceId(*hca) << " is offered, and pod " << number << " can open it";
      }
    }
  }

  void MakeOrRemoveVirtualFunction() {
    Nic& last = nics_.back();
    if (!last.physical.empty()) {
      EXPECT_EQ(last.owner, -1) << "a virtual function beside its PF was given away";
      nics_.pop_back();
      return;
    }
    const std::string physical = nics_[Any(4)].pci;
    std::string pci = physical;
    pci.back() = '1';
    nics_.push_back({pci, FreeName(), "ethv", physical});
    nics_.back().uverbs = next_uverbs_++;
  }

  void MoveInterface() {
    Nic& nic = nics_[Any(nics_.size())];
    if (nic.owner < 0) return;
    const char* const kSeen[] = {"", "net1", nic.netdev.c_str()};
    nic.seen_netdev = kSeen[Any(3)];
  }

  void SettleKubelet() {
    for (const auto& [pod, value] : pods_) known_.insert(pod);
    young_ = false;
  }

  void RestartAgent() {
    holdings_ = {};
    const bool all_there =
        std::all_of(nics_.begin(), nics_.end(), [](const Nic& nic) { return nic.present; });
    // The map may be lost while everything is there to make it anew from.
    const bool twins_apart = pods_.empty();
    if (all_there && twins_apart && random_() % 4 == 0) {
      map_ = {};
    } else {
      map_ = ParseRailMap(ToJson(map_, kMachine), kMachine).value();
    }
  }

  void StartPod() {
    // Kubelet knows all ids that its pods hold, whether it lists the pods or not.
    std::vector<const Device*> free;
    for (const Device& device : devices_) {
      const bool held = std::any_of(pods_.begin(), pods_.end(), [&device](const auto& pod) {
        return pod.second.ids.contains(device.id);
      });
      if (device.hca.health.usable() && !held) free.push_back(&device);
    }
    std::shuffle(free.begin(), free.end(), random_);
    free.resize(std::min(free.size(), 1 + Any(2)));
    if (free.empty()) return;
    const int number = next_pod_++;
    Pod pod;
    for (const Device* device : free) {
      const auto nic = std::find_if(nics_.begin(), nics_.end(), [device](const Nic& candidate) {
        return candidate.present && candidate.name == device->hca.name &&
               candidate.pci == device->hca.pci_address;
      });
      ASSERT_NE(nic, nics_.end()) << device->id << " is healthy, and not there";
      EXPECT_EQ(nic->owner, -1) << device->id << " has two owners";
      nic->owner = number;
      pod.ids.insert(device->id);
      pod.file.emplace_back(nic->name, nic->pci);
      fabric::PodRail rail;
      rail.device = nic->name;
      rail.pci_address = nic->pci;
      rail.char_devices = {NodeOf(*nic)};
      pod.rails.push_back(rail);
    }
    checkpoint_ = {};  // of pods that have gone
    pods_[number] = std::move(pod);
    known_.insert(number);
    for (const auto& [id, value] : pods_) {
      checkpoint_[id] = value.ids;
      files_[absl::StrCat(id)] = value.rails;
    }
    ++started_;
  }

  void EndPod(int number) {
    for (Nic& nic : nics_) {
      if (nic.owner != number) continue;
      nic.owner = -1;
      nic.seen_netdev = nic.netdev;
    }
    pods_.erase(number);
    known_.erase(number);
  }

  void Scan() {
    Evidence evidence;
    evidence.young = young_;
    evidence.own_pod = {"railhead", "agent"};
    evidence.listed = PodList();
    if (!young_ || !known_.empty()) evidence.listed->pods.insert(evidence.own_pod);
    for (const int number : known_) {
      const std::set<std::string>& ids = pods_[number].ids;
      evidence.listed->containers.push_back(
          {"team", absl::StrCat(number), "main", {{"rdma/hca", {ids.begin(), ids.end()}}}});
    }
    evidence.checkpoint.emplace();
    for (const auto& [number, ids] : checkpoint_) {
      const std::string uid = absl::StrCat(number);
      evidence.checkpoint->push_back({uid, "rdma/hca", ids, "", "main", uid});
    }
    holdings_ = Weigh(holdings_, evidence);
    std::vector<Grant> grants =
        LiveGrants(GrantsIn(*evidence.checkpoint), evidence.listed->containers, holdings_.complete);
    for (Grant& grant : grants) grant.rails = files_.at(*grant.rails_files.begin());

    fabric::NodeInventory inventory;
    for (const Nic& nic : nics_) {
      if (!nic.present) continue;
      inventory.hcas.push_back(MakeHca(nic.name, nic.pci, nic.seen_netdev));
      inventory.hcas.back().physical_function = nic.physical;
      inventory.hcas.back().char_devices = {NodeOf(nic)};
    }
    std::shuffle(inventory.hcas.begin(), inventory.hcas.end(), random_);
    Recognize(holdings_, map_, inventory);
    ApplyRails({}, inventory.hcas);
    const std::vector<Renumbering> renumbered = WithholdRenumbered(grants, inventory);
    inventory_ = inventory;
    CheckDeviceNodes(renumbered);
    devices_ = Assign(AgentConfig(), inventory, holdings_.by_resource)["rdma/hca"];
    CheckDevices(inventory);
    const std::set<std::string> held = HeldHcas(holdings_);
    for (auto& [number, pod] : pods_) {
      const bool used = std::any_of(pod.file.begin(), pod.file.end(), [&held](const auto& rail) {
        return MayBeAmong(held, rail.first, rail.second);
      });
      EXPECT_TRUE(used || !holdings_.complete) << "the file of a running pod is removed";
    }
  }

  void CheckDevices(const fabric::NodeInventory& inventory) {
    std::set<std::string> ids;
    std::set<int> rails;
    for (const Device& device : devices_) EXPECT_TRUE(ids.insert(device.id).second) << device.id;
    for (const fabric::Hca& hca : inventory.hcas) {
      if (!hca.offered) continue;
      EXPECT_TRUE(rails.insert(hca.rail).second) << hca.rail;
      for (int i = 0; i < 4; ++i) {
        const Nic& nic = nics_[static_cast<size_t>(i)];
        if (hca.pci_address != nic.pci) continue;
        EXPECT_EQ(hca.rail, i) << hca.name;
        EXPECT_EQ(hca.netdev, nic.netdev);
      }
    }
    EXPECT_LE(map_.hcas.size(), 20U);
    // Kubelet would give what it holds for a pod once more, were it not listed any more.
    for (const auto& [number, pod] : pods_) {
      for (const std::string& id : pod.ids) EXPECT_TRUE(ids.contains(id)) << id << " is lost";
    }
  }

  std::mt19937 random_;
  std::vector<Nic> nics_;
  std::map<int, Pod> pods_;
  std::set<int> known_;  // pods that kubelet lists
  std::map<int, std::set<std::string>> checkpoint_;
  bool young_ = false;
  RailMap map_;
  Holdings holdings_;
  fabric::NodeInventory inventory_;                            // as offered
  std::map<std::string, std::vector<fabric::PodRail>> files_;  // rails.json, by pod
  std::vector<Device> devices_;
  int next_pod_ = 0;
  int next_uverbs_ = 100;
  int restarted_ = 0;
  int refused_ = 0;
  int told_ = 0;
  int next_name_ = 2;
  int started_ = 0;
};

TEST(RandomHistories, NoHcaIsGivenTwiceNorOpenedInSilenceNoRailMovesAndNothingIsLeft) {
  int started = 0;
  int restarted = 0;
  int refused = 0;
  int told = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int i = 0; i < 25; ++i) history.Step();
    history.ComeToRest();
    started += history.started();
    restarted += history.restarted();
    refused += history.refused();
    told += history.told();
    if (HasFailure()) return;
  }
  EXPECT_GT(started, 1000);
  EXPECT_GT(refused, 100);
  EXPECT_GT(restarted, 2 * refused);
  EXPECT_GT(told, 1000) << "cases in which a container could open another NIC";
}

}  // namespace
}  // namespace railhead::device_plugin
