// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/config/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

fabric::Hca ConnectX() {
  fabric::Hca hca;
  hca.name = "mlx5_3";
  hca.pci_address = "0000:18:00.0";
  hca.numa_node = 1;
  hca.vendor = "15b3";
  hca.device = "1021";
  hca.driver = "mlx5_core";
  hca.netdev = "eth2";
  hca.ports = {{.port = 1, .state = "DOWN", .link_layer = "InfiniBand", .rate_gbps = 400},
               {.port = 2, .state = "ACTIVE", .link_layer = "Ethernet", .rate_gbps = 400}};
  hca.rail = 3;
  return hca;
}

// A software device of which next to nothing is known.
fabric::Hca Bare() {
  fabric::Hca hca;
  hca.name = "rxe0";
  return hca;
}

TEST(Matches, EachField) {
  const struct {
    Selector yes;
    Selector no;
    std::string why;
  } cases[] = {
      {{.names = {"mlx5_3"}}, {.names = {"mlx5_"}}, "its name is mlx5_3, not mlx5_"},
      {{.names = {"rxe*", "mlx?_*"}},
       {.names = {"rxe*", "mlx?"}},
       "its name is mlx5_3, not rxe* or mlx?"},
      {{.vendors = {"14e4", "15b3"}}, {.vendors = {"14e4"}}, "its vendor is 15b3, not 14e4"},
      {{.devices = {"1021"}}, {.devices = {"1023"}}, "its device id is 1021, not 1023"},
      {{.drivers = {"mlx5_core"}},
       {.drivers = {"mlx5*", "irdma", "efa"}},
       "its driver is mlx5_core, not mlx5*, irdma or efa"},
      {{.interfaces = {"eth?"}}, {.interfaces = {"ib*"}}, "its network interface is eth2, not ib*"},
      {{.link_layers = {"Ethernet"}},
       {.link_layers = {"InfiniBand"}},
       "its link layer is Ethernet, not InfiniBand"},
      {{.pci_addresses = {"0000:18:*"}},
       {.pci_addresses = {"0000:18:00.1"}},
       "its PCI address is 0000:18:00.0, not 0000:18:00.1"},
      {{.rails = {0, 3}}, {.rails = {0, 1, 2}}, "its rail is 3, not 0, 1 or 2"},
      {{.numa_nodes = {1}}, {.numa_nodes = {0}}, "its NUMA node is 1, not 0"},
      {{.roles = {"vf", "pf"}}, {.roles = {"vf", "sf"}}, "its role is pf, not vf or sf"},
  };
  for (const auto& test : cases) {
    EXPECT_TRUE(Matches(test.yes, ConnectX())) << test.why;
    EXPECT_EQ(WhyNot(test.yes, ConnectX()), "");
    EXPECT_FALSE(Matches(test.no, ConnectX())) << test.why;
    EXPECT_EQ(WhyNot(test.no, ConnectX()), test.why);
  }
}

TEST(Matches, EveryFieldMustAndEveryReasonIsTold) {
  EXPECT_TRUE(Matches(Selector(), ConnectX()));
  EXPECT_TRUE(Matches(Selector(), Bare()));
  const Selector selector = {.names = {"mlx*"}, .vendors = {"14e4"}, .rails = {0, 1}};
  EXPECT_FALSE(Matches(selector, ConnectX()));
  EXPECT_EQ(WhyNot(selector, ConnectX()),
            "its vendor is 15b3, not 14e4; its rail is 3, not 0 or 1");
}

TEST(Matches, WhatIsNotKnownMatchesNothing) {
  const Selector everything = {.names = {"*"},
                               .vendors = {""},
                               .devices = {""},
                               .drivers = {""},
                               .interfaces = {"*"},
                               .link_layers = {""},
                               .pci_addresses = {"*"},
                               .rails = {-1},
                               .numa_nodes = {-1}};
  EXPECT_EQ(WhyNot(everything, Bare()),
            "its vendor is unknown, not ; its device id is unknown, not ; its driver is unknown, "
            "not ; its network interface is none, not *; its link layer is unknown, not ; its PCI "
            "address is none, not *; its rail is none, not -1; its NUMA node is unknown, not -1");
}

TEST(Matches, IsNotAboutWhatIsOffered) {
  fabric::Hca hca = ConnectX();
  hca.offered = false;
  EXPECT_TRUE(Matches({.vendors = {"15b3"}}, hca));
}

// The definition of a wildcard, without any thought of speed.
bool SlowWildcard(absl::string_view pattern, absl::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return SlowWildcard(pattern.substr(1), text) ||
           (!text.empty() && SlowWildcard(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         SlowWildcard(pattern.substr(1), text.substr(1));
}

TEST(Matches, WildcardsEqualTheirDefinition) {
  std::mt19937 random(11);
  const auto word = [&random](absl::string_view letters, size_t least) {
    std::string text;
    for (size_t n = least + random() % 8; n > 0; --n) text += letters[random() % letters.size()];
    return text;
  };
  int matches = 0;
  for (int round = 0; round < 50000; ++round) {
    fabric::Hca hca;
    hca.name = word("ab", 1);
    const std::string pattern = word("ab*?", 0);
    const bool expected = SlowWildcard(pattern, hca.name);
    ASSERT_EQ(Matches({.names = {pattern}}, hca), expected) << pattern << " " << hca.name;
    matches += expected ? 1 : 0;
  }
  EXPECT_GT(matches, 1000);
}

TEST(Matches, AHostileWildcardEnds) {
  fabric::Hca hca;
  hca.name = std::string(2000, 'a');
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "*a";
  EXPECT_FALSE(Matches({.names = {pattern + "b"}}, hca));
  EXPECT_TRUE(Matches({.names = {pattern}}, hca));
}

TEST(ClosestMiss, NamesTheClosestAndItsReasons) {
  fabric::Hca far = ConnectX();
  far.name = "bnxt_re0";
  far.vendor = "14e4";
  far.rail = 0;
  EXPECT_EQ(ClosestMiss({{.names = {"mlx5_*"}, .vendors = {"15b3"}, .numa_nodes = {0}}},
                        {far, ConnectX()}),
            "mlx5_3 (rail 3) is the closest match, but its NUMA node is 1, not 0");
}

TEST(ClosestMiss, AmongEqualsTheLowestRailThenTheFirstSelector) {
  fabric::Hca first = ConnectX();
  first.name = "mlx5_0";
  first.rail = 0;
  const std::vector<Selector> selectors = {
      {.vendors = {"14e4"}, .devices = {"16d7"}}, {.vendors = {"1dd8"}}, {.vendors = {"8086"}}};
  EXPECT_EQ(
      ClosestMiss(selectors, {ConnectX(), first}),
      "mlx5_0 (rail 0) is the closest match to selectors[1], but its vendor is 15b3, not 1dd8");
}

TEST(ClosestMiss, NothingToSay) {
  EXPECT_EQ(ClosestMiss({{.vendors = {"14e4"}}, {.vendors = {"15b3"}}}, {Bare(), ConnectX()}), "");
  EXPECT_EQ(ClosestMiss({}, {ConnectX()}), "");
  EXPECT_EQ(ClosestMiss({}, {}), "");
}

TEST(ClosestMiss, OnlyWhatIsOfferedCounts) {
  fabric::Hca side = ConnectX();
  side.offered = false;
  EXPECT_EQ(ClosestMiss({{.vendors = {"15b3"}}}, {}), "this node offers no HCA");
  EXPECT_EQ(ClosestMiss({{.vendors = {"15b3"}}}, {side}), "this node offers no HCA");
  fabric::Hca offered = Bare();
  offered.rail = 0;
  EXPECT_EQ(ClosestMiss({{.vendors = {"15b3"}}}, {offered, side}),
            "rxe0 (rail 0) is the closest match, but its vendor is unknown, not 15b3");
}

}  // namespace
}  // namespace railhead::device_plugin
