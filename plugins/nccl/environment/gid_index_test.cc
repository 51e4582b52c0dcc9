// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/environment/gid_index.h"

#include <gtest/gtest.h>

#include <string>

namespace railhead::nccl {
namespace {

using fabric::GidEntry;
using GidTable = std::vector<GidEntry>;

constexpr char kLinkLocal[] = "fe80:0000:0000:0000:0200:00ff:fe00:0001";
constexpr char kNode[] = "0000:0000:0000:0000:0000:ffff:0a00:0001";  // 10.0.0.1
constexpr char kPod[] = "0000:0000:0000:0000:0000:ffff:0a01:0005";   // 10.1.0.5
constexpr char kPod2[] = "0000:0000:0000:0000:0000:ffff:0a02:0005";  // 10.2.0.5
constexpr char kPodV6[] = "fd00:0000:0000:0000:0000:0000:0000:0005";

std::vector<net::IpAddress> Own(const std::vector<std::string>& texts) {
  std::vector<net::IpAddress> own;
  own.reserve(texts.size());
  for (const std::string& text : texts) own.push_back(*net::IpAddress::Parse(text));
  return own;
}

// The node's entries, of both versions, then those of a pod.
GidTable TableOf(const std::vector<std::string>& pods) {
  GidTable table = {{0, "IB/RoCE v1", kLinkLocal, "eth0"},
                    {1, "RoCE v2", kLinkLocal, "eth0"},
                    {2, "IB/RoCE v1", kNode, "eth0"},
                    {3, "RoCE v2", kNode, "eth0"}};
  for (const std::string& gid : pods) {
    table.push_back({static_cast<int>(table.size()), "IB/RoCE v1", gid, "net1"});
    table.push_back({static_cast<int>(table.size()), "RoCE v2", gid, "net1"});
  }
  return table;
}

TEST(GidIndexTest, IsWhereAllRailsHaveAnOwnAddress) {
  EXPECT_EQ(ChooseGidIndex({TableOf({kPod}), TableOf({kPod2})}, Own({"10.1.0.5", "10.2.0.5"})), 5);
  EXPECT_EQ(ChooseGidIndex({TableOf({kPod2, kPod})}, Own({"127.0.0.1", "10.1.0.5"})), 7);
  EXPECT_EQ(ChooseGidIndex({TableOf({kPod})}, Own({"10.0.0.1"})), 3) << "on the host's network";
}

TEST(GidIndexTest, IPv4IsPreferred) {
  const GidTable both = TableOf({kPodV6, kPod});
  EXPECT_EQ(ChooseGidIndex({both}, Own({"fd00::5", "10.1.0.5"})), 7);
  EXPECT_EQ(ChooseGidIndex({both}, Own({"fd00::5"})), 5);
}

TEST(GidIndexTest, NoneIsRightIfRailsDiffer) {
  const std::vector<net::IpAddress> own = Own({"10.1.0.5", "10.2.0.5", "fd00::5"});
  EXPECT_EQ(ChooseGidIndex({TableOf({kPod}), TableOf({kNode, kPod2})}, own), std::nullopt)
      << "other indices";
  EXPECT_EQ(ChooseGidIndex({TableOf({kPod}), TableOf({kPodV6})}, own), std::nullopt)
      << "of other families";
  EXPECT_EQ(ChooseGidIndex({TableOf({kPod}), TableOf({})}, own), std::nullopt) << "the node's only";
  EXPECT_EQ(ChooseGidIndex({TableOf({kPod}), {}}, own), std::nullopt) << "an unknown table";
}

TEST(GidIndexTest, NcclChoosesOtherwise) {
  EXPECT_EQ(ChooseGidIndex({}, Own({"10.1.0.5"})), std::nullopt);
  EXPECT_EQ(ChooseGidIndex({TableOf({kPod})}, {}), std::nullopt);
  EXPECT_EQ(ChooseGidIndex({TableOf({kPod})}, Own({"10.9.9.9"})), std::nullopt);
  EXPECT_EQ(ChooseGidIndex({TableOf({})}, Own({"fe80::200:ff:fe00:1"})), std::nullopt)
      << "a link-local address does not cross a router";
  EXPECT_EQ(ChooseGidIndex({{{0, "IB/RoCE v1", kPod, "net1"}}}, Own({"10.1.0.5"})), std::nullopt);
  EXPECT_EQ(ChooseGidIndex({{{0, "RoCE v2", "10.1.0.5 ", "net1"}, {1, "RoCE v2", "", ""}}},
                           Own({"10.1.0.5"})),
            std::nullopt);
}

}  // namespace
}  // namespace railhead::nccl
