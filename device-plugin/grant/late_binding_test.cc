// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/late_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/grant/preference.h"
#include "fabric/affinity.h"
#include "fabric/inventory.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/machines.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

DeviceSnapshot SnapshotOf(const std::string& machine_name, int slots) {
  for (const fabric::testing::Machine& machine : fabric::testing::Machines()) {
    if (machine.name != machine_name) continue;
    fabric::testing::SysfsTree tree;
    fabric::testing::Build(machine, tree);
    DeviceSnapshot snapshot;
    snapshot.inventory = fabric::ReadInventory(tree.root()).value();
    for (const fabric::Hca& hca : snapshot.inventory.hcas) {
      for (int slot = 0; slot < slots; ++slot) {
        snapshot.devices.push_back({DeviceId(hca.name, hca.pci_address, slot), hca});
      }
    }
    return snapshot;
  }
  ADD_FAILURE() << "no machine " << machine_name;
  return {};
}

std::string IdOf(const fabric::Hca& hca) { return DeviceId(hca.name, hca.pci_address); }

void MakeSick(DeviceSnapshot& snapshot, size_t hca) {
  snapshot.inventory.hcas[hca].health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  for (Device& device : snapshot.devices) {
    if (device.hca.name != snapshot.inventory.hcas[hca].name) continue;
    device.hca.health = snapshot.inventory.hcas[hca].health;
  }
}

class LateBindingTest : public ::testing::Test {
 protected:
  std::string Id(size_t hca) const { return IdOf(h100_.inventory.hcas[hca]); }
  std::string Gpu(size_t gpu) const { return h100_.inventory.gpus[gpu].pci_address; }

  // On a DGX H100 GPU i and HCA i share a switch; 0 to 3 and 4 to 7 share a NUMA node.
  DeviceSnapshot h100_ = SnapshotOf("DGX H100", 4);
};

TEST_F(LateBindingTest, BindsToTheHcaAtTheGpusSwitch) {
  for (size_t gpu = 0; gpu < 8; ++gpu) {
    EXPECT_THAT(Bind(h100_, {{{Id(0), Id(0)}}, false, {Gpu(gpu)}, {}}),
                ElementsAre(Pair(Id(0), Id(gpu))));
  }
  // Who is near already stays.
  EXPECT_THAT(Bind(h100_, {{{Id(0), Id(0)}, {Id(4), Id(4)}}, false, {Gpu(4), Gpu(6)}, {}}),
              ElementsAre(Pair(Id(0), Id(6)), Pair(Id(4), Id(4))));
}

TEST_F(LateBindingTest, LeavesAloneWhatIsAsNearAsCanBeOrIsNotKnown) {
  const Binding now = {{Id(2), Id(2)}, {Id(0), Id(0)}};
  // GPU 2's own and another one of its NUMA node: no other pair is nearer, though some are emptier.
  EXPECT_EQ(Bind(h100_, {now, false, {Gpu(2)}, {{Id(0), 3}, {Id(2), 3}}}), now);
  EXPECT_EQ(Bind(h100_, {now, false, {}, {}}), now);
  EXPECT_EQ(Bind(h100_, {now, false, {"no such GPU"}, {}}), now);
  EXPECT_EQ(Bind(h100_, {{}, false, {Gpu(2)}, {}}), Binding());
  EXPECT_EQ(Bind(DeviceSnapshot(), {now, false, {Gpu(2)}, {}}), now);
}

TEST_F(LateBindingTest, StaysForLifeOnceItIsSettled) {
  const Binding far = {{Id(7), Id(7)}};
  EXPECT_EQ(Bind(h100_, {far, true, {Gpu(0)}, {}}), far);
}

TEST_F(LateBindingTest, GoesOnlyWhereThereIsRoom) {
  const Binding far = {{Id(7), Id(7)}};
  EXPECT_EQ(Bind(h100_, {far, false, {Gpu(0)}, {{Id(0), 3}}}), (Binding{{Id(7), Id(0)}}));
  // The next is the emptiest of the NUMA node, then the lowest rail.
  EXPECT_EQ(Bind(h100_, {far, false, {Gpu(0)}, {{Id(0), 4}, {Id(1), 2}, {Id(2), 1}, {Id(3), 1}}}),
            (Binding{{Id(7), Id(2)}}));
  // What kubelet named may always be kept, however many share it.
  EXPECT_EQ(Bind(h100_, {{{Id(0), Id(0)}}, false, {Gpu(0)}, {{Id(0), 9}}}),
            (Binding{{Id(0), Id(0)}}));
}

TEST_F(LateBindingTest, NeverGoesToASickOne) {
  MakeSick(h100_, 0);
  EXPECT_EQ(Bind(h100_, {{{Id(7), Id(7)}}, false, {Gpu(0)}, {}}), (Binding{{Id(7), Id(1)}}));
}

// The container that starts gets the current device nodes.
TEST_F(LateBindingTest, StaysAtItsOwnWhoseOnlyTroubleIsRenumbering) {
  const Binding now = {{Id(0), Id(0)}};
  fabric::Health& health = h100_.inventory.hcas[0].health;
  health.Set(fabric::Stage::kRenumbering, "a container has its device node");
  EXPECT_EQ(Bind(h100_, {now, true, {Gpu(0)}, {}}), now);
  health.Set(fabric::Stage::kFlapDamping, "its link flaps");
  EXPECT_EQ(Bind(h100_, {now, true, {Gpu(0)}, {}}), (Binding{{Id(0), Id(1)}}));
  health.Set(fabric::Stage::kRenumbering, "");
  EXPECT_EQ(Bind(h100_, {now, true, {Gpu(0)}, {}}), (Binding{{Id(0), Id(1)}}));
}

TEST_F(LateBindingTest, NeverGoesToOneThatIsNotOfferedInSlots) {
  for (Device& device : h100_.devices) {
    if (WholeHca(device.id) == Id(0)) {
      device.hca.health.Set(fabric::Stage::kAssignment, "a pod may still hold this HCA");
    }
    if (WholeHca(device.id) == Id(1)) device.id = Id(1);  // exclusive
  }
  EXPECT_EQ(Bind(h100_, {{{Id(7), Id(7)}}, false, {Gpu(0)}, {}}), (Binding{{Id(7), Id(2)}}));
}

TEST_F(LateBindingTest, ReplacesASickOneAlsoLater) {
  const Binding now = {{Id(0), Id(5)}, {Id(1), Id(6)}};
  MakeSick(h100_, 5);
  EXPECT_EQ(Bind(h100_, {now, true, {Gpu(5), Gpu(6)}, {}}),
            (Binding{{Id(0), Id(4)}, {Id(1), Id(6)}}));
  // Also where nothing is known of GPUs; as far from the other as can be.
  EXPECT_EQ(Bind(h100_, {now, true, {}, {}}), (Binding{{Id(0), Id(0)}, {Id(1), Id(6)}}));
}

TEST_F(LateBindingTest, KeepsASickOneWhenThereIsNoOther) {
  for (size_t hca = 0; hca < 8; ++hca) {
    if (hca != 3) MakeSick(h100_, hca);
  }
  const Binding now = {{Id(0), Id(0)}, {Id(1), Id(1)}};
  EXPECT_EQ(Bind(h100_, {now, true, {}, {}}), (Binding{{Id(0), Id(3)}, {Id(1), Id(1)}}));
  MakeSick(h100_, 3);
  EXPECT_EQ(Bind(h100_, {now, true, {}, {}}), now);
}

// How near a choice is: the sum over GPUs of the nearest HCA, then the sum over HCAs of the nearest
// GPU.
std::pair<int, int> Farness(const DeviceSnapshot& snapshot, const std::vector<std::string>& gpus,
                            const std::set<std::string>& hcas) {
  std::pair<int, int> sum;
  const auto level = [&](const std::string& gpu, const std::string& hca) {
    const auto found = std::find_if(snapshot.inventory.gpus.begin(), snapshot.inventory.gpus.end(),
                                    [&gpu](const auto& g) { return g.pci_address == gpu; });
    return static_cast<int>(fabric::LevelBetween(*found, *snapshot.FindHca(hca)));
  };
  for (const std::string& gpu : gpus) {
    int least = 99;
    for (const std::string& hca : hcas) least = std::min(least, level(gpu, hca));
    sum.first += least;
  }
  for (const std::string& hca : hcas) {
    int least = 99;
    for (const std::string& gpu : gpus) least = std::min(least, level(gpu, hca));
    sum.second += least;
  }
  return sum;
}

// Every choice of `size` of `from`.
std::vector<std::set<std::string>> Choices(const std::vector<std::string>& from, size_t size) {
  std::vector<std::set<std::string>> choices;
  std::vector<bool> take(from.size(), false);
  std::fill(take.begin(), take.begin() + static_cast<std::ptrdiff_t>(size), true);
  do {
    std::set<std::string>& choice = choices.emplace_back();
    for (size_t i = 0; i < from.size(); ++i) {
      if (take[i]) choice.insert(from[i]);
    }
  } while (std::prev_permutation(take.begin(), take.end()));
  return choices;
}

TEST(LateBinding, IsAsNearAsAnyChoiceThatTheRulesAllow) {
  std::mt19937 random(20260102);
  int moved = 0;
  int kept = 0;
  int replaced = 0;
  for (const fabric::testing::Machine& machine : fabric::testing::Machines()) {
    const DeviceSnapshot well = SnapshotOf(machine.name, 2);
    for (int round = 0; round < 200; ++round) {
      DeviceSnapshot snapshot = well;
      const size_t count = snapshot.inventory.hcas.size();
      std::vector<std::string> ids;
      for (const fabric::Hca& hca : snapshot.inventory.hcas) ids.push_back(IdOf(hca));
      BindingWish wish;
      for (size_t i = 0; i < count; ++i) {
        if (random() % 6 == 0) MakeSick(snapshot, i);
        wish.load[ids[i]] = static_cast<int64_t>(random() % 4);
      }
      for (const fabric::Gpu& gpu : snapshot.inventory.gpus) {
        if (random() % 2 == 0) wish.gpus.push_back(gpu.pci_address);
      }
      std::vector<std::string> named = ids;
      std::vector<std::string> now = ids;
      std::shuffle(named.begin(), named.end(), random);
      const size_t size = 1 + random() % std::min<size_t>(count, 5);
      wish.settled = random() % 2 == 0;
      // What has not started yet is bound to what kubelet named.
      now = named;
      if (wish.settled) std::shuffle(now.begin(), now.end(), random);
      for (size_t i = 0; i < size; ++i) wish.now[named[i]] = now[i];

      const Binding bound = Bind(snapshot, wish);

      std::set<std::string> own;
      for (const auto& [name, hca] : wish.now) own.insert({name, hca});
      std::vector<std::string> allowed;
      for (const std::string& id : ids) {
        if (snapshot.FindHca(id)->health.usable() && (wish.load[id] < 2 || own.contains(id))) {
          allowed.push_back(id);
        }
      }
      std::set<std::string> chosen;
      std::set<std::string> staying;
      size_t unusable = 0;
      ASSERT_EQ(bound.size(), wish.now.size());
      for (const auto& [name, hca] : wish.now) {
        ASSERT_TRUE(bound.contains(name));
        EXPECT_TRUE(chosen.insert(bound.at(name)).second) << "one HCA twice";
        if (snapshot.FindHca(hca)->health.usable()) staying.insert(hca);
        if (bound.at(name) == hca) {
          unusable += snapshot.FindHca(hca)->health.usable() ? 0U : 1U;
        } else {
          EXPECT_TRUE(std::count(allowed.begin(), allowed.end(), bound.at(name)) > 0);
        }
      }
      EXPECT_EQ(unusable, size - std::min(size, allowed.size())) << "a sick one stays in vain";
      const bool anew = !wish.settled && !wish.gpus.empty();
      if (!anew) {
        EXPECT_TRUE(std::includes(chosen.begin(), chosen.end(), staying.begin(), staying.end()));
        replaced += staying.size() < size ? 1 : 0;
        if (staying.size() == size) {
          EXPECT_EQ(bound, wish.now);
        }
      }
      if (allowed.size() < size) continue;
      std::optional<std::pair<int, int>> nearest;
      std::optional<std::vector<int64_t>> least;
      Wish as_preferred;
      as_preferred.gpus = wish.gpus;
      as_preferred.load = wish.load;
      DeviceSnapshot whole;
      whole.inventory = snapshot.inventory;
      for (const std::string& id : allowed) {
        whole.devices.push_back({id, *snapshot.FindHca(id)});
        as_preferred.available.push_back(id);
      }
      for (const std::set<std::string>& choice : Choices(allowed, size)) {
        if (!anew && !std::includes(choice.begin(), choice.end(), staying.begin(), staying.end())) {
          continue;
        }
        const std::pair<int, int> farness = Farness(snapshot, wish.gpus, choice);
        nearest = std::min(nearest.value_or(farness), farness);
        const std::vector<int64_t> cost =
            CostOf(whole, as_preferred, {choice.begin(), choice.end()});
        least = std::min(least.value_or(cost), cost);
      }
      if (!wish.gpus.empty()) {
        EXPECT_EQ(Farness(snapshot, wish.gpus, chosen), *nearest) << machine.name;
      }
      if (bound == wish.now) {
        ++kept;
      } else {
        ++moved;
        // Then also the emptiest, and the lowest rails.
        EXPECT_EQ(CostOf(whole, as_preferred, {chosen.begin(), chosen.end()}), *least);
      }
    }
  }
  EXPECT_GE(moved, 200);
  EXPECT_GE(kept, 200);
  EXPECT_GE(replaced, 50);
}

}  // namespace
}  // namespace railhead::device_plugin
