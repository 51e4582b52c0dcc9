// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/preference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/inventory.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/machines.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

DeviceSnapshot SnapshotFor(const std::string& machine_name, int slots = 1) {
  for (const fabric::testing::Machine& machine : fabric::testing::Machines()) {
    if (machine.name != machine_name) continue;
    fabric::testing::SysfsTree tree;
    fabric::testing::Build(machine, tree);
    DeviceSnapshot snapshot;
    snapshot.inventory = fabric::ReadInventory(tree.root()).value();
    for (const fabric::Hca& hca : snapshot.inventory.hcas) {
      for (int slot = 0; slot < slots; ++slot) {
        snapshot.devices.push_back({absl::StrCat(hca.name, "/", slot), hca});
      }
    }
    return snapshot;
  }
  ADD_FAILURE() << "no machine " << machine_name;
  return {};
}

std::vector<std::string> Ids(const DeviceSnapshot& snapshot) {
  std::vector<std::string> ids;
  for (const Device& device : snapshot.devices) ids.push_back(device.id);
  return ids;
}

Wish WishFor(const DeviceSnapshot& snapshot, size_t size, const std::vector<size_t>& gpus) {
  Wish wish{Ids(snapshot), {}, size, {}};
  for (const size_t gpu : gpus) wish.gpus.push_back(snapshot.inventory.gpus[gpu].pci_address);
  return wish;
}

TEST(Prefer, TheHcaAtTheGpusSwitch) {
  const DeviceSnapshot h100 = SnapshotFor("DGX H100");
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_THAT(Prefer(h100, WishFor(h100, 1, {i})), ElementsAre(absl::StrCat("mlx5_", i, "/0")));
  }
  EXPECT_THAT(Prefer(h100, WishFor(h100, 4, {6, 1, 3, 4})),
              ElementsAre("mlx5_1/0", "mlx5_3/0", "mlx5_4/0", "mlx5_6/0"));
}

// Two GPUs at each switch: the first of each switch before the second of any.
TEST(Prefer, OneAtEachSwitchFirst) {
  const DeviceSnapshot hgx = SnapshotFor("HGX with PCIe switches");
  // GPUs 0 and 1 are at the switch of mlx5_0, 2 and 3 at that of mlx5_1; mlx5_2 is at a root port.
  EXPECT_THAT(Prefer(hgx, WishFor(hgx, 2, {0, 1, 2, 3})), ElementsAre("mlx5_0/0", "mlx5_1/0"));
  EXPECT_THAT(Prefer(hgx, WishFor(hgx, 1, {2, 3})), ElementsAre("mlx5_1/0"));
  const DeviceSnapshot a100 = SnapshotFor("DGX A100");
  EXPECT_THAT(Prefer(a100, WishFor(a100, 2, {0, 1, 4, 5})).size(), 2U);
  EXPECT_THAT(Prefer(a100, WishFor(a100, 4, {0, 4})),
              UnorderedElementsAre("mlx5_0/0", "mlx5_1/0", "mlx5_4/0", "mlx5_5/0"));
}

TEST(Prefer, WithoutGpusFarFromOneAnotherAndAlwaysTheSame) {
  const DeviceSnapshot h100 = SnapshotFor("DGX H100");
  EXPECT_THAT(Prefer(h100, WishFor(h100, 2, {})), ElementsAre("mlx5_0/0", "mlx5_4/0"));
  std::vector<std::string> all = Prefer(h100, WishFor(h100, 8, {}));
  EXPECT_EQ(all, Ids(h100));
}

TEST(Prefer, OfSharedOnesThoseWithTheMostFreeSlots) {
  const DeviceSnapshot vm = SnapshotFor("virtual machine", 3);
  Wish wish = WishFor(vm, 1, {});
  wish.available = {"mlx5_0/1", "mlx5_0/2", "mlx5_1/0", "mlx5_1/1", "mlx5_1/2"};
  EXPECT_THAT(Prefer(vm, wish), ElementsAre("mlx5_1/0"));
  // Two slots of one HCA are no more than one.
  wish.size = 2;
  EXPECT_THAT(Prefer(vm, wish), ElementsAre("mlx5_0/1", "mlx5_1/0"));
  wish.size = 4;
  EXPECT_EQ(Prefer(vm, wish).size(), 4U);
}

TEST(Prefer, AnotherHcaBeforeASecondSlotOfTheNearest) {
  const DeviceSnapshot h100 = SnapshotFor("DGX H100", 2);
  EXPECT_THAT(Prefer(h100, WishFor(h100, 2, {2})), ElementsAre("mlx5_0/0", "mlx5_2/0"));
  Wish wish = WishFor(h100, 3, {2});
  wish.available = {"mlx5_2/0", "mlx5_2/1", "mlx5_7/0"};
  EXPECT_EQ(Prefer(h100, wish).size(), 3U);
}

TEST(Prefer, KeepsWhatMustBeIncluded) {
  const DeviceSnapshot h100 = SnapshotFor("DGX H100");
  Wish wish = WishFor(h100, 2, {0, 1});
  wish.must_include = {"mlx5_7/0"};
  EXPECT_THAT(Prefer(h100, wish), ElementsAre("mlx5_7/0", "mlx5_0/0"));
}

TEST(Prefer, TakesOddWishesAsTheyAre) {
  const DeviceSnapshot h100 = SnapshotFor("DGX H100");
  EXPECT_THAT(Prefer(h100, Wish{}), IsEmpty());
  EXPECT_THAT(Prefer(h100, Wish{{"mlx5_3/0"}, {}, 5, {"nonsense"}}), ElementsAre("mlx5_3/0"));
  EXPECT_THAT(Prefer(h100, Wish{{"unknown", "mlx5_3/0"}, {}, 2, {}}),
              ElementsAre("mlx5_3/0", "unknown"));
  EXPECT_THAT(Prefer(h100, Wish{{"mlx5_3/0", "mlx5_3/0"}, {}, 2, {}}), ElementsAre("mlx5_3/0"));
  EXPECT_THAT(Prefer(DeviceSnapshot{}, Wish{{"a", "b"}, {"b"}, 2, {}}), ElementsAre("b", "a"));
}

TEST(Aligned, IsAsNearAsCanBe) {
  const DeviceSnapshot h100 = SnapshotFor("DGX H100");
  const std::string gpu = h100.inventory.gpus[3].pci_address;
  EXPECT_TRUE(IsAligned(h100, {"mlx5_3/0"}, {gpu}));
  EXPECT_FALSE(IsAligned(h100, {"mlx5_2/0"}, {gpu}));
  EXPECT_TRUE(IsAligned(h100, {"mlx5_3/0", "mlx5_0/0"}, {gpu}));  // the same NUMA node
  EXPECT_FALSE(IsAligned(h100, {"mlx5_3/0", "mlx5_4/0"}, {gpu}));
  EXPECT_TRUE(IsAligned(h100, {"mlx5_2/0"}, {}));
  EXPECT_TRUE(IsAligned(h100, {"mlx5_2/0"}, {"no such GPU"}));
  EXPECT_TRUE(IsAligned(h100, {}, {gpu}));
  // Two slots of one HCA are one HCA.
  EXPECT_TRUE(IsAligned(SnapshotFor("DGX H100", 2), {"mlx5_3/0", "mlx5_3/1"}, {gpu}));
}

// The least cost of any choice of `size` devices.
std::vector<int64_t> BruteForce(const DeviceSnapshot& snapshot, const Wish& wish) {
  std::optional<std::vector<int64_t>> least;
  std::vector<bool> take(wish.available.size(), false);
  std::fill(take.begin(), take.begin() + static_cast<std::ptrdiff_t>(wish.size), true);
  do {
    std::vector<std::string> chosen;
    for (size_t i = 0; i < take.size(); ++i) {
      if (take[i]) chosen.push_back(wish.available[i]);
    }
    std::vector<int64_t> cost = CostOf(snapshot, wish, chosen);
    if (!least.has_value() || cost < *least) least = std::move(cost);
  } while (std::prev_permutation(take.begin(), take.end()));
  return *least;
}

TEST(Prefer, IsAsGoodAsAnyChoiceOnEveryMachine) {
  std::mt19937 random(20260101);
  int compared = 0;
  for (const fabric::testing::Machine& machine : fabric::testing::Machines()) {
    const DeviceSnapshot whole = SnapshotFor(machine.name);
    const DeviceSnapshot shared = SnapshotFor(machine.name, 2);
    for (int round = 0; round < 200; ++round) {
      const DeviceSnapshot& snapshot = round % 4 == 0 ? shared : whole;
      Wish wish;
      wish.available = Ids(snapshot);
      std::shuffle(wish.available.begin(), wish.available.end(), random);
      const size_t most = std::min<size_t>(wish.available.size(), 10);
      wish.available.resize(1 + random() % most);
      wish.size = 1 + random() % wish.available.size();
      for (const fabric::Gpu& gpu : snapshot.inventory.gpus) {
        if (random() % 2 == 0) wish.gpus.push_back(gpu.pci_address);
      }
      const std::vector<std::string> chosen = Prefer(snapshot, wish);
      ASSERT_EQ(std::set<std::string>(chosen.begin(), chosen.end()).size(), wish.size);
      EXPECT_EQ(CostOf(snapshot, wish, chosen), BruteForce(snapshot, wish)) << machine.name;
      ++compared;
    }
  }
  EXPECT_GE(compared, 900);
}

// As many as an agent may offer: 64 rails with 64 slots each, in eight NUMA nodes.
DeviceSnapshot SnapshotOfThousands() {
  DeviceSnapshot snapshot;
  for (int rail = 0; rail < 64; ++rail) {
    fabric::Hca hca;
    hca.name = absl::StrCat("mlx5_", rail);
    hca.rail = rail;
    hca.numa_node = rail / 8;
    for (int slot = 0; slot < 64; ++slot) {
      snapshot.devices.push_back({absl::StrCat(hca.name, "-s", slot), hca});
    }
  }
  return snapshot;
}

// Whichever slots of which machine are free, whichever GPUs the container has, and however many
// slots it requests: no exchange of one device is better, and any order of the same ids gives the
// same devices.
TEST(Prefer, ManySlotsAreALocalOptimumInAnyOrder) {
  std::mt19937 random(20261129);
  const std::vector<fabric::testing::Machine> machines = fabric::testing::Machines();
  for (int round = 0; round < 40; ++round) {
    const DeviceSnapshot snapshot =
        SnapshotFor(machines[random() % machines.size()].name, 1 + static_cast<int>(random() % 32));
    Wish wish;
    wish.available = Ids(snapshot);
    if (wish.available.empty()) continue;
    std::shuffle(wish.available.begin(), wish.available.end(), random);
    wish.available.resize(1 + random() % wish.available.size());
    wish.size = 1 + random() % wish.available.size();
    for (const fabric::Gpu& gpu : snapshot.inventory.gpus) {
      if (random() % 3 == 0) wish.gpus.push_back(gpu.pci_address);
    }
    if (random() % 3 == 0) {
      wish.must_include.assign(wish.available.begin(), wish.available.begin() + 1);
    }
    const std::vector<std::string> chosen = Prefer(snapshot, wish);
    const std::set<std::string> different(chosen.begin(), chosen.end());
    ASSERT_EQ(different.size(), wish.size);
    for (const std::string& id : wish.must_include) EXPECT_TRUE(different.contains(id));
    const std::vector<int64_t> cost = CostOf(snapshot, wish, chosen);
    for (int i = 0; i < 20; ++i) {
      std::vector<std::string> exchanged = chosen;
      const size_t place = wish.must_include.size() + random() % chosen.size();
      const std::string& other = wish.available[random() % wish.available.size()];
      if (place >= exchanged.size() || different.contains(other)) continue;
      exchanged[place] = other;
      ASSERT_GE(CostOf(snapshot, wish, exchanged), cost);
    }
    std::shuffle(wish.available.begin(), wish.available.end(), random);
    EXPECT_EQ(Prefer(snapshot, wish), chosen);
  }
}

// Kubelet admits no other pod while it waits for the answer.
TEST(Prefer, ThousandsOfSlotsNeedFewSteps) {
  const DeviceSnapshot snapshot = SnapshotOfThousands();
  for (const size_t size : {1, 8, 250, 500, 4000, 4096}) {
    StepLimit limit;
    const std::vector<std::string> chosen = Prefer(snapshot, WishFor(snapshot, size, {}), limit);
    EXPECT_EQ(std::set<std::string>(chosen.begin(), chosen.end()).size(), size);
    // One for each HCA and slot, and a few rounds of exchanges.
    EXPECT_LE(limit.taken(), 64 * size + 8 * 64 * 64) << size;
    std::map<std::string, size_t> slots;
    for (const std::string& id : chosen) ++slots[WholeHca(id)];
    for (const auto& [hca, count] : slots) {
      EXPECT_GE(count, size / 64) << hca;
      EXPECT_LE(count, size / 64 + 1) << hca;
    }
  }
}

TEST(Prefer, TheLimitOfStepsGivesTheBestSoFar) {
  const DeviceSnapshot snapshot = SnapshotOfThousands();
  for (const size_t most : {0, 1, 1000, 20000}) {
    StepLimit limit(most);
    const std::vector<std::string> chosen = Prefer(snapshot, WishFor(snapshot, 4000, {}), limit);
    EXPECT_EQ(std::set<std::string>(chosen.begin(), chosen.end()).size(), 4000U);
    EXPECT_EQ(limit.taken(), most);
  }
}

TEST(Prefer, ACallThatIsCancelledEnds) {
  const DeviceSnapshot snapshot = SnapshotOfThousands();
  int looks = 0;
  StepLimit limit(StepLimit::kMost, [&looks] { return ++looks > 3; });
  EXPECT_EQ(Prefer(snapshot, WishFor(snapshot, 4000, {}), limit).size(), 4000U);
  EXPECT_EQ(looks, 4) << "it is not looked at again";
  EXPECT_LT(limit.taken(), 1000U);
}

TEST(Prefer, ThousandsOfSlotsNeedLittleMemory) {
  const DeviceSnapshot snapshot = SnapshotOfThousands();
  const auto peak_kib = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const Wish wish = WishFor(snapshot, 2, {});
  const int64_t before = peak_kib();
  EXPECT_THAT(Prefer(snapshot, wish), ElementsAre("mlx5_0-s0", "mlx5_8-s0"));
  const int64_t grown = peak_kib() - before;
  RecordProperty("grown_kib", std::to_string(grown));
  EXPECT_LT(grown, 64 * 1024);
}

}  // namespace
}  // namespace railhead::device_plugin
