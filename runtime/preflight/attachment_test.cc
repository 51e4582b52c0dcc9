// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/attachment.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "fabric/pod_rails.h"
#include "fabric/testing/sysfs_tree.h"
#include "runtime/net/address.h"

namespace railhead::preflight {
namespace {

constexpr char kOnMlx1[] = "192.168.64.7 is an address of mlx5_1 (0000:c1:00.0)";

// A node with two RoCE NICs, as a pod with macvlan interfaces sees it.
class AttachmentTest : public ::testing::Test {
 protected:
  AttachmentTest() {
    AddNic(0, "0000:18:00.0");
    AddNic(1, "0000:c1:00.0");
    for (int rail = 0; rail < 2; ++rail) {
      Gid(rail, 0, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "ens1f0np0");
    }
    Gid(0, 2, "0000:0000:0000:0000:0000:ffff:c0a8:0007", "net1");
    Gid(1, 2, "0000:0000:0000:0000:0000:ffff:c0a8:4007", "net2");
  }

  void AddNic(int number, const std::string& pci) const {
    fabric::testing::FakeHca hca;
    hca.name = absl::StrCat("mlx5_", number);
    hca.pci = pci;
    hca.link_layer = "Ethernet";
    tree_.AddHca(hca);
    tree_.Write(Folder(number) + "/node_type", "1: CA\n");
  }

  static std::string Folder(int number) {
    return absl::StrCat("/sys/class/infiniband/mlx5_", number);
  }

  void Gid(int number, int index, const std::string& gid, const std::string& netdev) const {
    const std::string port = Folder(number) + "/ports/1";
    tree_.Write(absl::StrCat(port, "/gid_attrs/types/", index), "RoCE v2\n");
    tree_.Write(absl::StrCat(port, "/gids/", index), gid + "\n");
    tree_.Write(absl::StrCat(port, "/gid_attrs/ndevs/", index), netdev + "\n");
  }

  // The facts of a pod that got these rails and has these addresses.
  std::vector<RailFacts> Facts(const std::vector<int>& rails,
                               const std::vector<std::string>& own) const {
    std::vector<fabric::PodRail> pod_rails;
    std::vector<RailFacts> facts;
    for (const int number : rails) {
      fabric::PodRail& rail = pod_rails.emplace_back();
      rail.rail = number;
      rail.device = absl::StrCat("mlx5_", number);
      rail.netdev = "ens1f0np0";
      facts.emplace_back().name = {number, rail.device, 1, "verbs"};
    }
    std::vector<net::IpAddress> addresses;
    for (const std::string& text : own) addresses.push_back(*net::IpAddress::Parse(text));
    FindAttachments(tree_.root(), pod_rails, addresses, absl::MakeSpan(facts));
    return facts;
  }

  fabric::testing::SysfsTree tree_;
};

TEST_F(AttachmentTest, OnTheNicOfItsHca) {
  for (const RailFacts& rail : Facts({0, 1}, {"10.244.1.2", "192.168.0.7", "192.168.64.7"})) {
    EXPECT_EQ(rail.attached_elsewhere, "");
  }
}

TEST_F(AttachmentTest, OnAnotherNic) {
  const std::vector<RailFacts> facts = Facts({0}, {"10.244.1.2", "192.168.64.7"});
  EXPECT_EQ(facts[0].attached_elsewhere, kOnMlx1);
  // Not that of another pod's interface, which is routable too.
  EXPECT_FALSE(facts[0].has_node_gid);
}

TEST_F(AttachmentTest, ARailWithoutAttachmentBesideOneWith) {
  const std::vector<RailFacts> facts = Facts({0, 1}, {"10.244.1.2", "192.168.64.7"});
  EXPECT_EQ(facts[0].attached_elsewhere, "") << "the pod did get mlx5_1";
  EXPECT_EQ(facts[1].attached_elsewhere, "");
}

TEST_F(AttachmentTest, TheNodesAddressWorks) {
  Gid(0, 4, "0000:0000:0000:0000:0000:ffff:0a0a:0001", "ens1f0np0.100");
  const std::vector<RailFacts> facts = Facts({0}, {"10.244.1.2", "192.168.64.7"});
  EXPECT_EQ(facts[0].attached_elsewhere, kOnMlx1);
  EXPECT_TRUE(facts[0].has_node_gid);
}

TEST_F(AttachmentTest, PodsWithoutAttachmentsAndHostNetworkAreNotMeant) {
  EXPECT_EQ(Facts({0}, {"10.244.1.2"})[0].attached_elsewhere, "");
  tree_.MakeFolder("/sys/class/net/ens1f0np0");
  EXPECT_EQ(Facts({0}, {"10.244.1.2", "192.168.64.7"})[0].attached_elsewhere, "");
}

TEST_F(AttachmentTest, Ipv6) {
  Gid(1, 3, "2001:0db8:0000:0000:0000:0000:0000:0007", "net2");
  EXPECT_EQ(Facts({0}, {"2001:db8::7"})[0].attached_elsewhere,
            "2001:db8::7 is an address of mlx5_1 (0000:c1:00.0)");
}

TEST_F(AttachmentTest, WithoutTablesNothingIsKnown) {
  std::vector<fabric::PodRail> rails(2);
  rails[0].device = "../../etc";
  rails[1].device = "mlx5_9";
  std::vector<RailFacts> facts(2);
  FindAttachments(tree_.root(), rails, {}, absl::MakeSpan(facts));
  FindAttachments("/nowhere", rails, {}, absl::MakeSpan(facts));
  EXPECT_EQ(facts[0].attached_elsewhere + facts[1].attached_elsewhere, "");
}

}  // namespace
}  // namespace railhead::preflight
