// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/ibnetdiscover_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/source.h"

namespace railhead::fabric {
namespace {

using ::testing::HasSubstr;

constexpr char kSubnet[] =
    "#\n# Topology file: generated on Sun Nov 22 21:27:53 2026\n#\n"
    "# Initiated from node 0000000000100000 port 0000000000100001\n\n"
    "vendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x200000\nswitchguid=0x200000(200000)\n"
    "Switch\t64 \"S-0000000000200000\"\t\t# \"leaf \"zero\"\" base port 0 lid 3 lmc 0\n"
    "[1]\t\"H-0000000000100000\"[1](100001) \t\t# \"n0 mlx5_0\" lid 4 4xNDR\n"
    "[7]\t\"S-0000000000200002\"[1]\t\t# \"spine0\" lid 5 4xXDR\n"
    "[8][ext 3]\t\"H-00000000002000ff\"[1](2000ff) \t\t# \"Mellanox Technologies Aggregation "
    "Node\" "
    "lid 9 4xHDR\n\n"
    "switchguid=0x200002(200002)\n"
    "Switch\t64 \"S-0000000000200002\"\t\t# \"spine0\" base port 0 lid 5 lmc 0\n"
    "[1]\t\"S-0000000000200000\"[7]\t\t# \"leaf0\" lid 3 4xXDR\n\n"
    "caguid=0x2000ff\n"
    "Ca\t1 \"H-00000000002000ff\"\t\t# \"Mellanox Technologies Aggregation Node\"\n"
    "[1](2000ff) \t\"S-0000000000200000\"[8]\t\t# lid 9 lmc 0 \"leaf0\" lid 3 4xHDR\n\n"
    "caguid=0x100000\n"
    "Ca\t2 \"H-0000000000100000\"\t\t# \"n0 mlx5_0\"\n"
    "[1](100001) \t\"S-0000000000200000\"[1]\t\t# lid 4 lmc 0 \"leaf0\" lid 3 4xNDR\n";

std::string ErrorOf(const std::string& text) {
  const auto seen = ReadSource(text, "ib.txt");
  EXPECT_FALSE(seen.ok()) << text;
  return std::string(seen.status().message());
}

TEST(Ibnetdiscover, EachCableIsSeenOnce) {
  const auto seen = ReadSource(kSubnet, "ib.txt");
  ASSERT_TRUE(seen.ok()) << seen.status();
  Observations want;
  want.devices = {{"S-0000000000200000", "leaf \"zero\"", DeviceKind::kSwitch},
                  {"S-0000000000200002", "spine0", DeviceKind::kSwitch},
                  {"H-0000000000100000", "n0", DeviceKind::kHost}};
  want.links = {{{"S-0000000000200000", "1"},
                 {"H-0000000000100000", "mlx5_0"},
                 Evidence::kInfiniBand,
                 400,
                 "ib.txt:11"},
                {{"S-0000000000200000", "7"},
                 {"S-0000000000200002", "1"},
                 Evidence::kInfiniBand,
                 800,
                 "ib.txt:12"}};
  EXPECT_EQ(*seen, want);
}

TEST(Ibnetdiscover, AnAdapterWithoutItsHostsNameHasNone) {
  const auto seen = ReadSource(
      absl::StrReplaceAll(kSubnet, {{"n0 mlx5_0", "MT4129 ConnectX7   Mellanox Technologies"}}),
      "ib.txt");
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->devices[2].name, "");
  EXPECT_EQ(seen->links[0].far.port, "H-0000000000100000");
}

TEST(Ibnetdiscover, WhatIsWrongIsNamed) {
  EXPECT_THAT(ErrorOf(absl::StrReplaceAll(kSubnet, {{"[7]\t", "[700]\t"}})),
              HasSubstr("ib.txt:12: port: must be as in [1]"));
  EXPECT_THAT(ErrorOf(absl::StrReplaceAll(kSubnet, {{"\"[7]\t", "\"[6]\t"}})),
              HasSubstr("ib.txt:17: port: port 1 of \"S-0000000000200002\" leads to"));
  EXPECT_THAT(ErrorOf(absl::StrReplaceAll(kSubnet, {{"Switch\t64", "Switch\tmany"}})),
              HasSubstr("ib.txt:10: Switch: must be followed by the number of its ports"));
  EXPECT_THAT(ErrorOf(std::string(kSubnet).substr(0, 700)), HasSubstr("ib.txt:"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kSubnet, "\n", kSubnet)),
              HasSubstr("Switch: \"S-0000000000200000\" is listed a second time"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kSubnet, "\n[1] \"S-0000000000200000\"[2]\n")),
              HasSubstr("is a port without a device"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kSubnet, "\nhello\n")),
              HasSubstr("\"hello\" is not a line of ibnetdiscover's output"));
  EXPECT_THAT(ErrorOf("caguid=0x1\n"), HasSubstr("lists no switch and no HCA"));
  EXPECT_THAT(ErrorOf("something else"), HasSubstr("has an unknown format"));
}

TEST(Ibnetdiscover, AnOddDescriptionSpoilsItselfAlone) {
  const auto seen = ReadSource(absl::StrReplaceAll(kSubnet, {{"spine0",
                                                              "\x1b[2J\xff\xe2\x80\xae"
                                                              "spine"}}),
                               "ib.txt");
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->devices[1].name, "\\x1b[2J\\xff\\u202espine");
  EXPECT_EQ(seen->links.size(), 2U);
}

}  // namespace
}  // namespace railhead::fabric
