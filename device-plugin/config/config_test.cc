// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device-plugin/config/selector.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

fabric::Hca MakeHca(const std::string& name, const std::string& pci_address = "") {
  fabric::Hca hca;
  hca.name = name;
  hca.pci_address = pci_address;
  return hca;
}

TEST(ShareOut, TheFirstResourceThatMatchesTakesAnHca) {
  std::vector<fabric::Hca> hcas = {MakeHca("mlx5_0"), MakeHca("rxe0"), MakeHca("mlx5_1"),
                                   MakeHca("efa0"), MakeHca("mlx5_1_dma")};
  hcas[4].offered = false;
  AgentConfig config;
  EXPECT_THAT(ShareOut(config, hcas), ElementsAre(ElementsAre(0, 1, 2, 3)));
  config.resources = {{.name = "a/rest"},
                      {.name = "a/one", .selectors = {{.names = {"*_1"}}, {.names = {"rxe*"}}}},
                      {.name = "a/mlx5", .selectors = {{.names = {"mlx5_*"}}}},
                      {.name = "a/none", .selectors = {{.names = {"rxe0"}}}}};
  EXPECT_THAT(ShareOut(config, hcas),
              ElementsAre(ElementsAre(3), ElementsAre(1, 2), ElementsAre(0), IsEmpty()));
  config.resources.erase(config.resources.begin());
  EXPECT_THAT(ShareOut(config, hcas), ElementsAre(ElementsAre(1, 2), ElementsAre(0), IsEmpty()));
}

TEST(IsChosen, ByASelectorThatNamesTheRoleAndNoPhysicalOne) {
  fabric::Hca vf = MakeHca("mlx5_8", "0000:18:00.1");
  vf.role = fabric::HcaRole::kVirtualFunction;
  AgentConfig config;
  EXPECT_FALSE(IsChosen(config, vf));
  const struct {
    Selector selector;
    bool chosen;
  } cases[] = {{{.names = {"mlx5_*"}}, false},
               {{.roles = {"vf"}}, true},
               {{.rails = {3}, .roles = {"vf", "sf"}}, true},
               {{.roles = {"sf"}}, false},
               {{.roles = {"vf", "pf"}}, false},
               {{.names = {"rxe*"}, .roles = {"vf"}}, false}};
  for (const auto& test : cases) {
    config.resources = {{.name = "a/rest"}, {.name = "a/b", .selectors = {test.selector}}};
    EXPECT_EQ(IsChosen(config, vf), test.chosen) << (&test - cases);
  }
}

TEST(ApplyRails, WhatComesAfterTheLastRailIsNone) {
  std::vector<fabric::Hca> hcas(60, MakeHca("mlx5"));
  fabric::AssignRails(hcas);
  std::vector<RailEntry> missing;
  for (int rail = 0; rail < 10; ++rail) missing.push_back({.rail = rail, .name = "away"});
  ApplyRails(missing, hcas);
  EXPECT_EQ(std::count_if(hcas.begin(), hcas.end(), [](const auto& hca) { return hca.offered; }),
            54);
  for (const fabric::Hca& hca : hcas) EXPECT_LE(hca.rail, fabric::kHighestRail);
}

TEST(ShareOut, EqualsBruteForce) {
  std::mt19937 random(7);
  const auto some = [&random](std::vector<std::string> of) {
    of.erase(std::remove_if(of.begin(), of.end(), [&](const auto&) { return random() % 2 == 0; }),
             of.end());
    return of;
  };
  int shared = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<fabric::Hca> hcas(random() % 6);
    for (size_t i = 0; i < hcas.size(); ++i) {
      hcas[i] = MakeHca(absl::StrCat(random() % 2 == 0 ? "mlx5_" : "rxe", i));
      hcas[i].vendor = random() % 2 == 0 ? "15b3" : "14e4";
      hcas[i].rail = static_cast<int>(i);
      hcas[i].offered = random() % 5 != 0;
    }
    AgentConfig config;
    config.resources.assign(1 + random() % 4, ResourceConfig());
    size_t rest = config.resources.size() + random() % 2;  // past the end: no such resource
    if (rest > config.resources.size()) rest = random() % config.resources.size();
    for (size_t r = 0; r < config.resources.size(); ++r) {
      if (r == rest) continue;
      for (size_t s = 1 + random() % 2; s > 0; --s) {
        config.resources[r].selectors.push_back({.names = some({"mlx5_*", "rxe?", "*2"}),
                                                 .vendors = some({"15b3", "14e4"}),
                                                 .rails = {static_cast<int>(random() % 6), 0}});
      }
    }
    std::vector<std::vector<size_t>> expected(config.resources.size());
    for (size_t i = 0; i < hcas.size(); ++i) {
      for (size_t r = 0; r < config.resources.size() && hcas[i].offered; ++r) {
        bool taken_before = false;
        bool matched_by_any = false;
        bool matches = false;
        for (size_t other = 0; other < config.resources.size(); ++other) {
          for (const Selector& selector : config.resources[other].selectors) {
            if (!WhyNot(selector, hcas[i]).empty()) continue;
            matched_by_any = true;
            taken_before |= other < r;
            matches |= other == r;
          }
        }
        if (r == rest ? !matched_by_any : (matches && !taken_before)) expected[r].push_back(i);
      }
    }
    const std::vector<std::vector<size_t>> shares = ShareOut(config, hcas);
    ASSERT_EQ(shares, expected);
    std::set<size_t> seen;
    for (const std::vector<size_t>& share : shares) {
      shared += static_cast<int>(share.size());
      for (const size_t i : share) {
        EXPECT_TRUE(seen.insert(i).second);
        EXPECT_TRUE(hcas[i].offered);
      }
    }
  }
  EXPECT_GT(shared, 1000);
}

std::string Rails(const std::vector<RailEntry>& entries, std::vector<fabric::Hca> hcas) {
  fabric::AssignRails(hcas);
  ApplyRails(entries, hcas);
  return absl::StrJoin(hcas, " ", [](std::string* out, const fabric::Hca& hca) {
    absl::StrAppend(out, hca.name, "=", hca.rail);
  });
}

TEST(ApplyRails, WithoutEntriesEachKeepsItsNumber) {
  std::vector<fabric::Hca> hcas = {MakeHca("c"), MakeHca("b", "0000:02:00.0"),
                                   MakeHca("a", "0000:01:00.0"), MakeHca("side", "0000:00:00.0")};
  hcas[3].offered = false;
  EXPECT_EQ(Rails({}, hcas), "a=0 b=1 c=2 side=-1");
  fabric::AssignRails(hcas);
  hcas[2].rail = 7;  // what was between them is missing
  std::swap(hcas[0].rail, hcas[1].rail);
  ApplyRails({}, hcas);
  EXPECT_EQ(absl::StrJoin(hcas, " ",
                          [](std::string* out, const fabric::Hca& hca) {
                            absl::StrAppend(out, hca.name, "=", hca.rail);
                          }),
            "b=0 a=1 c=7 side=-1");
}

TEST(ApplyRails, WhatIsFreeBetweenTheOthersStaysFree) {
  std::vector<fabric::Hca> hcas = {MakeHca("a"), MakeHca("b"), MakeHca("c")};
  fabric::AssignRails(hcas);
  hcas[2].rail = 4;
  ApplyRails({{.rail = 1, .name = "a"}}, hcas);
  EXPECT_EQ(hcas[0].rail, 0);  // b
  EXPECT_EQ(hcas[1].rail, 1);  // a
  EXPECT_EQ(hcas[2].rail, 4);  // c: it was the fourth, and 1 is taken
}

TEST(ApplyRails, TheOthersTakeTheLowestNumbersLeft) {
  std::vector<fabric::Hca> hcas = {MakeHca("a", "0000:01:00.0"), MakeHca("b", "0000:02:00.0"),
                                   MakeHca("c", "0000:03:00.0"), MakeHca("d", "0000:04:00.0")};
  hcas[2].netdev = "eth2";
  EXPECT_EQ(Rails({{.rail = 0, .interface = "eth2"}}, hcas), "c=0 a=1 b=2 d=3");
  EXPECT_EQ(Rails({{.rail = 1, .pci_address = "0000:04:00.0"}, {.rail = 9, .name = "a"}}, hcas),
            "b=0 d=1 c=2 a=9");
}

TEST(ApplyRails, TheNumberOfAMissingHcaStaysReserved) {
  const std::vector<fabric::Hca> hcas = {MakeHca("a"), MakeHca("b")};
  EXPECT_EQ(Rails({{.rail = 0, .name = "gone"}, {.rail = 1, .interface = "eth9"}}, hcas),
            "a=2 b=3");
}

TEST(ApplyRails, OneHcaForAnEntryAndOneEntryForAnHca) {
  std::vector<fabric::Hca> hcas = {MakeHca("a"), MakeHca("b"), MakeHca("side")};
  hcas[0].netdev = hcas[1].netdev = hcas[2].netdev = "eth0";
  hcas[2].offered = false;
  EXPECT_EQ(Rails({{.rail = 5, .interface = "eth0"}}, hcas), "b=0 a=5 side=-1");
  EXPECT_EQ(Rails({{.rail = 5, .interface = "eth0"}, {.rail = 0, .name = "a"}}, hcas),
            "b=1 a=5 side=-1");
  EXPECT_EQ(Rails({{.rail = 0, .name = "side"}}, hcas), "a=1 b=2 side=-1");
}

// Numbers are unique, entries are obeyed, and the others keep their order.
TEST(ApplyRails, RandomEntries) {
  std::mt19937 random(13);
  for (int round = 0; round < 2000; ++round) {
    std::vector<fabric::Hca> hcas;
    for (unsigned i = 0; i < random() % 8; ++i) {
      hcas.push_back(MakeHca(absl::StrCat("mlx5_", i)));
      hcas.back().offered = random() % 6 != 0;
    }
    std::shuffle(hcas.begin(), hcas.end(), random);
    std::map<std::string, int> wanted;
    std::vector<RailEntry> entries;
    std::set<int> reserved;
    for (unsigned i = 0; i < 8; ++i) {
      const int rail = static_cast<int>(random() % 20);
      if (random() % 3 != 0 || !reserved.insert(rail).second) continue;
      entries.push_back({.rail = rail, .name = absl::StrCat("mlx5_", i)});
      wanted[entries.back().name] = rail;
    }
    fabric::AssignRails(hcas);
    ApplyRails(entries, hcas);
    std::set<int> seen;
    std::string last_free;
    int last_rail = -1;
    bool offered = true;
    for (const fabric::Hca& hca : hcas) {
      EXPECT_TRUE(offered || !hca.offered);
      offered = hca.offered;
      if (!offered) {
        EXPECT_EQ(hca.rail, -1);
        continue;
      }
      EXPECT_GT(hca.rail, last_rail);
      last_rail = hca.rail;
      EXPECT_TRUE(seen.insert(hca.rail).second);
      if (wanted.count(hca.name) > 0) {
        EXPECT_EQ(hca.rail, wanted[hca.name]);
        continue;
      }
      EXPECT_LT(last_free, hca.name);
      last_free = hca.name;
      for (int lower = 0; lower < hca.rail; ++lower) {
        EXPECT_TRUE(seen.count(lower) > 0 || reserved.count(lower) > 0);
      }
    }
  }
}

}  // namespace
}  // namespace railhead::device_plugin
