// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/gid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/transport/verbs/fake_verbs.h"

namespace railhead::transport::verbs {
namespace {

constexpr uint32_t kV1 = IBV_GID_TYPE_ROCE_V1;
constexpr uint32_t kV2 = IBV_GID_TYPE_ROCE_V2;
constexpr uint32_t kIb = IBV_GID_TYPE_IB;

// "KINDNAME=ADDRESS@INDEX" of each choice.
std::vector<std::string> Texts(const std::vector<GidChoice>& choices) {
  std::vector<std::string> texts;
  texts.reserve(choices.size());
  for (const GidChoice& choice : choices) {
    texts.push_back(
        absl::StrCat(GidKindName(choice.kind), "=", GidText(choice.gid), "@", choice.index));
  }
  return texts;
}

std::vector<std::string> UsableRoce(const std::vector<ibv_gid_entry>& table, uint32_t port = 1,
                                    const std::vector<std::string>& own = {},
                                    const std::set<uint32_t>& node = {}) {
  std::vector<net::IpAddress> addresses;
  for (const std::string& text : own) addresses.push_back(*net::IpAddress::Parse(text));
  return Texts(UsableGids(table, port, /*infiniband=*/false, addresses, node));
}

TEST(UsableGids, TheUsualTableOfANicWithOneAddress) {
  EXPECT_THAT(UsableRoce({FakeGid(0, "fe80::1", kV1), FakeGid(1, "fe80::1", kV2),
                          FakeGid(2, "192.168.7.5", kV1), FakeGid(3, "192.168.7.5", kV2)}),
              testing::ElementsAre(
                  "RoCE v2 over IPv4=192.168.7.5@3", "RoCE v2 over link-local IPv6=fe80::1@1",
                  "RoCE v1 (IPv4)=192.168.7.5@2", "RoCE v1 (link-local)=fe80::1@0"));
}

TEST(UsableGids, SparseTableOfAMacvlanPod) {
  EXPECT_THAT(UsableRoce({FakeGid(6, "fe80::2", kV1), FakeGid(7, "fe80::2", kV2),
                          FakeGid(8, "10.1.2.3", kV1), FakeGid(9, "10.1.2.3", kV2)})
                  .front(),
              "RoCE v2 over IPv4=10.1.2.3@9");
}

// The node's own GIDs come first, and another pod's; indices in between are empty.
TEST(UsableGids, APodTakesItsOwnAndNobodyElses) {
  const std::vector<ibv_gid_entry> table = {
      FakeGid(0, "fe80::1", kV1),   FakeGid(1, "fe80::1", kV2),   FakeGid(2, "10.0.0.1", kV1),
      FakeGid(3, "10.0.0.1", kV2),  FakeGid(8, "10.0.0.7", kV1),  FakeGid(9, "10.0.0.7", kV2),
      FakeGid(14, "10.0.0.8", kV1), FakeGid(15, "10.0.0.8", kV2), FakeGid(17, "2001:db8::8", kV2)};
  EXPECT_THAT(UsableRoce(table, 1, {"127.0.0.1", "10.244.3.5", "10.0.0.8"}),
              testing::ElementsAre("RoCE v2 over IPv4=10.0.0.8@15", "RoCE v1 (IPv4)=10.0.0.8@14"));
  EXPECT_THAT(UsableRoce(table, 1, {"2001:db8::8"}),
              testing::ElementsAre("RoCE v2 over IPv6=2001:db8::8@17"));
  // It has no interface on this port: the node shares its own.
  EXPECT_EQ(UsableRoce(table, 1, {"10.244.3.5"}).front(), "RoCE v2 over IPv4=10.0.0.1@3");
  // It is the node.
  EXPECT_EQ(UsableRoce(table, 1, {"10.0.0.1"}).front(), "RoCE v2 over IPv4=10.0.0.1@3");
}

// The node's address was given again, and came behind another pod's.
TEST(UsableGids, APodWithoutItsOwnTakesTheNodesAndNobodyElses) {
  const std::vector<ibv_gid_entry> table = {FakeGid(1, "fe80::1", kV2), FakeGid(3, "10.0.0.7", kV2),
                                            FakeGid(9, "10.0.0.1", kV2)};
  EXPECT_THAT(UsableRoce(table, 1, {"10.244.3.5"}, {1, 9}),
              testing::ElementsAre("RoCE v2 over IPv4=10.0.0.1@9",
                                   "RoCE v2 over link-local IPv6=fe80::1@1"));
  EXPECT_THAT(UsableRoce(table, 1, {"10.0.0.7"}, {1, 9}),
              testing::ElementsAre("RoCE v2 over IPv4=10.0.0.7@3"));
  // The node's address may be that of an interface with another name, which is not known.
  EXPECT_EQ(UsableRoce(table, 1, {"10.244.3.5"}, {1}).front(), "RoCE v2 over IPv4=10.0.0.7@3");
}

TEST(UsableGids, OrderOfTheTableDoesNotMatter) {
  EXPECT_THAT(UsableRoce({FakeGid(9, "10.0.0.9", kV2), FakeGid(4, "10.0.0.4", kV2),
                          FakeGid(7, "10.0.0.7", kV2)}),
              testing::ElementsAre("RoCE v2 over IPv4=10.0.0.4@4"));
}

TEST(UsableGids, RoutableIpv6ComesBeforeLinkLocal) {
  EXPECT_THAT(UsableRoce({FakeGid(0, "fe80::1", kV2), FakeGid(1, "2001:db8::5", kV2)}),
              testing::ElementsAre("RoCE v2 over IPv6=2001:db8::5@1",
                                   "RoCE v2 over link-local IPv6=fe80::1@0"));
}

TEST(UsableGids, VersionOneIsTheLastResort) {
  EXPECT_THAT(UsableRoce({FakeGid(0, "10.0.0.1", kV1), FakeGid(5, "fe80::1", kV2)}).front(),
              "RoCE v2 over link-local IPv6=fe80::1@5");
  EXPECT_THAT(UsableRoce({FakeGid(0, "10.0.0.1", kV1)}),
              testing::ElementsAre("RoCE v1 (IPv4)=10.0.0.1@0"));
}

TEST(UsableGids, ZeroesAndOtherPortsAreSkipped) {
  EXPECT_THAT(UsableRoce({FakeGid(0, "::", kV2), FakeGid(1, "0.0.0.0", kV2),
                          FakeGid(2, "fe80::", kV2), FakeGid(3, "10.0.0.1", kV2, /*port=*/2)}),
              testing::IsEmpty());
  EXPECT_THAT(UsableRoce({FakeGid(3, "10.0.0.1", kV2, /*port=*/2)}, 2), testing::SizeIs(1));
}

TEST(UsableGids, AnIndexThatAnAddressVectorCannotNameIsSkipped) {
  EXPECT_THAT(UsableRoce({FakeGid(300, "10.0.0.1", kV2)}), testing::IsEmpty());
  EXPECT_THAT(UsableRoce({FakeGid(255, "10.0.0.1", kV2)}), testing::SizeIs(1));
}

TEST(UsableGids, LinkLayersAreNotMixed) {
  EXPECT_THAT(UsableRoce({FakeGid(0, "fe80::1", kIb)}), testing::IsEmpty());
  EXPECT_THAT(UsableGids({FakeGid(0, "10.0.0.1", kV2)}, 1, true, {}), testing::IsEmpty());
  EXPECT_THAT(Texts(UsableGids({FakeGid(0, "fe80::f452:1403:1:2", kIb)}, 1, true, {})),
              testing::ElementsAre("InfiniBand=fe80::f452:1403:1:2@0"));
}

TEST(CommonGids, BothSidesAgreeOnTheBestSharedKind) {
  const auto node =
      UsableGids({FakeGid(0, "fe80::1", kV2), FakeGid(3, "10.0.0.1", kV2)}, 1, false, {});
  const auto pod = UsableGids({FakeGid(5, "fe80::2", kV2)}, 1, false, {});
  const std::optional<GidPair> there = CommonGids(node, pod);
  const std::optional<GidPair> back = CommonGids(pod, node);
  ASSERT_TRUE(there.has_value() && back.has_value());
  EXPECT_EQ(there->local.index, 0u);
  EXPECT_EQ(there->local.gid, back->peer.gid);
  EXPECT_EQ(there->peer.gid, back->local.gid);
  EXPECT_EQ(back->local.index, 5u);
}

TEST(CommonGids, NothingInCommon) {
  const auto four = UsableGids({FakeGid(0, "10.0.0.1", kV2)}, 1, false, {});
  const auto six = UsableGids({FakeGid(0, "2001:db8::1", kV2)}, 1, false, {});
  EXPECT_FALSE(CommonGids(four, six).has_value());
  EXPECT_FALSE(CommonGids(four, {}).has_value());
}

}  // namespace
}  // namespace railhead::transport::verbs
