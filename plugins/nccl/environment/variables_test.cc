// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/environment/variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "fabric/nccl_ib_hca.h"

namespace railhead::nccl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Values = std::map<std::string, std::string>;

constexpr char kLibrary[] = "/opt/libnccl-net-railhead.so";

fabric::PodRail Rail(int number, const std::string& device, int port = 1) {
  fabric::PodRail rail;
  rail.rail = number;
  rail.device = device;
  rail.port = port;
  return rail;
}

TEST(NcclIbHcaTest, HasExactNamesPortsAndRails) {
  EXPECT_EQ(fabric::NcclIbHca({Rail(3, "mlx5_1"), Rail(0, "mlx5_10", 2)}),
            "=mlx5_1:1:3,mlx5_10:2:0");
}

// Returns what is added to the variables `own`.
Values Added(const RailFacts& facts, const Values& own) {
  const auto lookup = [&own](absl::string_view name) -> std::optional<std::string> {
    const auto found = own.find(std::string(name));
    if (found == own.end()) return std::nullopt;
    return found->second;
  };
  config::Settings settings;
  EXPECT_TRUE(config::ReadSettings(lookup, settings).ok());
  Values added;
  for (const Variable& variable : VariablesFor(facts, settings, lookup)) {
    EXPECT_TRUE(added.try_emplace(variable.name, variable.value).second) << variable.name;
    EXPECT_FALSE(own.contains(variable.name)) << "the user's value applies";
    EXPECT_FALSE(variable.reason.empty());
  }
  return added;
}

TEST(VariablesTest, DevicesAreThoseOfTheRails) {
  const RailFacts two{{Rail(0, "mlx5_0"), Rail(1, "mlx5_1")}, std::nullopt, ""};
  EXPECT_THAT(Added(two, {}), ElementsAre(Pair("NCCL_IB_HCA", "=mlx5_0:1:0,mlx5_1:1:1")));
  const RailFacts odd{{Rail(3, "roce2", 2)}, std::nullopt, ""};
  EXPECT_THAT(Added(odd, {}), ElementsAre(Pair("NCCL_IB_HCA", "=roce2:2:3")));
  EXPECT_THAT(Added({}, {}), IsEmpty());
}

TEST(VariablesTest, AGidIndexYieldsToTheUsersWayOfChoosing) {
  const RailFacts facts{{Rail(0, "rxe0")}, 5, ""};
  EXPECT_THAT(Added(facts, {}),
              ElementsAre(Pair("NCCL_IB_GID_INDEX", "5"), Pair("NCCL_IB_HCA", "=rxe0:1:0")));
  for (const char* own : {"NCCL_IB_ADDR_FAMILY", "NCCL_IB_ADDR_RANGE", "NCCL_IB_ROCE_VERSION_NUM",
                          "NCCL_IB_GID_INDEX"}) {
    EXPECT_THAT(Added(facts, {{own, ""}}), ElementsAre(Pair("NCCL_IB_HCA", "=rxe0:1:0"))) << own;
  }
  EXPECT_THAT(Added(facts, {{"NCCL_IB_HCA", "mlx5"}}), IsEmpty()) << "of other devices";
}

TEST(VariablesTest, SettingsOfOursAreNcclsToo) {
  EXPECT_THAT(Added({}, {{"RAILHEAD_IB_TC", "106"}, {"RAILHEAD_IB_SL", "3"}}),
              ElementsAre(Pair("NCCL_IB_SL", "3"), Pair("NCCL_IB_TC", "106")));
  EXPECT_THAT(Added({}, {{"RAILHEAD_IB_TC", "0"}}), ElementsAre(Pair("NCCL_IB_TC", "0")));
  EXPECT_THAT(Added({}, {{"RAILHEAD_IB_TC", ""}}), IsEmpty());
  EXPECT_THAT(Added({}, {{"RAILHEAD_SOCKET_IFNAME", "eth1, eth2"}}),
              ElementsAre(Pair("NCCL_SOCKET_IFNAME", "=eth1,eth2")));
  EXPECT_THAT(Added({}, {{"RAILHEAD_SOCKET_IFNAME", "eth1"}, {"NCCL_SOCKET_IFNAME", ""}}),
              IsEmpty());
}

TEST(VariablesTest, WithoutRdmaNcclUsesNone) {
  const RailFacts facts{{Rail(0, "mlx5_0")}, 3, ""};
  EXPECT_THAT(Added(facts, {{"RAILHEAD_TRANSPORT", "tcp"}}),
              ElementsAre(Pair("NCCL_IB_DISABLE", "1")));
  EXPECT_THAT(Added(facts, {{"RAILHEAD_TRANSPORT", "tcp"}, {"NCCL_IB_DISABLE", "0"}}), IsEmpty());
}

TEST(VariablesTest, TheLibraryIsTheNetworkUnlessTheUserHasChosen) {
  const RailFacts facts{{}, std::nullopt, kLibrary};
  EXPECT_THAT(Added(facts, {}), ElementsAre(Pair("NCCL_NET_PLUGIN", kLibrary)));
  EXPECT_THAT(Added(facts, {{"NCCL_NET", "Railhead"}}),
              ElementsAre(Pair("NCCL_NET_PLUGIN", kLibrary)));
  for (const char* network : {"IB", "Socket", ""}) {
    EXPECT_THAT(Added(facts, {{"NCCL_NET", network}}), IsEmpty()) << network;
  }
  for (const char* plugin : {"none", "aws-ofi", kLibrary}) {
    EXPECT_THAT(Added(facts, {{"NCCL_NET_PLUGIN", plugin}, {"RAILHEAD_FALLBACK", "fail"}}),
                IsEmpty());
  }
  for (const std::string& unusable : {std::string("/opt/a,b/lib.so"), std::string(255, 'x')}) {
    EXPECT_THAT(Added({{}, std::nullopt, unusable}, {}), IsEmpty());
  }
}

TEST(VariablesTest, AJobThatMustNotFallBackNamesTheNetwork) {
  const RailFacts facts{{}, std::nullopt, kLibrary};
  for (const Values& own :
       {Values{{"RAILHEAD_FALLBACK", "fail"}}, Values{{"RAILHEAD_REQUIRE_RDMA", "1"}}}) {
    EXPECT_THAT(Added(facts, own),
                ElementsAre(Pair("NCCL_NET", "Railhead"), Pair("NCCL_NET_PLUGIN", kLibrary)));
  }
  EXPECT_THAT(Added(facts, {{"RAILHEAD_FALLBACK", "warn"}}),
              ElementsAre(Pair("NCCL_NET_PLUGIN", kLibrary)));
}

}  // namespace
}  // namespace railhead::nccl
