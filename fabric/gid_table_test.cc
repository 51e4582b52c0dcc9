// SPDX-License-Identifier: Apache-2.0
#include "fabric/gid_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "fabric/root_files.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric {
namespace {

constexpr char kDevice[] = "/sys/class/infiniband/mlx5_0";
constexpr char kPort[] = "/sys/class/infiniband/mlx5_0/ports/1";
constexpr char kLocal[] = "fe80:0000:0000:0000:0000:0000:0000:0001";
constexpr char kTenNet[] = "0000:0000:0000:0000:0000:ffff:0a0a:0001";
constexpr char kZero[] = "0000:0000:0000:0000:0000:0000:0000:0000";

TEST(KindOfGid, TellsWhatAnAddressReaches) {
  EXPECT_EQ(KindOfGid(kTenNet), AddressKind::kRoutable);
  EXPECT_EQ(KindOfGid("2001:0db8:0000:0000:0000:0000:0000:0001"), AddressKind::kRoutable);
  EXPECT_EQ(KindOfGid(kLocal), AddressKind::kLinkLocal);
  EXPECT_EQ(KindOfGid("febf:0000:0000:0000:0000:0000:0000:0001"), AddressKind::kLinkLocal);
  EXPECT_EQ(KindOfGid("fec0:0000:0000:0000:0000:0000:0000:0001"), AddressKind::kRoutable);
  EXPECT_EQ(KindOfGid("0000:0000:0000:0000:0000:ffff:a9fe:0102"), AddressKind::kLinkLocal);
  for (const char* none : {"", kZero, "fe80::1", "10.10.0.1", "zzzz:0:0:0:0:0:0:1"}) {
    EXPECT_EQ(KindOfGid(none), AddressKind::kNone) << none;
  }
}

TEST(Summarize, TellsTheHostsAddressesFromThoseOfPods) {
  const PortAddresses found = Summarize({{0, "IB/RoCE v1", kTenNet, "eth0"},
                                         {1, "RoCE v2", kLocal, "eth0"},
                                         {2, "RoCE v2", kTenNet, "net1"}},
                                        {"eth0"});
  EXPECT_EQ(found.host, AddressKind::kLinkLocal);
  EXPECT_EQ(found.pod, AddressKind::kRoutable);
  EXPECT_EQ(found.gid, "");
  EXPECT_EQ(Summarize({{0, "RoCE v2", kTenNet, ""}}, {}).gid, kTenNet);
  EXPECT_EQ(Summarize({}, {}).host, AddressKind::kNone);
}

class GidTableTest : public ::testing::Test {
 protected:
  GidTableTest() {
    tree_.Write(std::string(kDevice) + "/node_type", "1: CA\n");
    tree_.Write(std::string(kPort) + "/link_layer", "Ethernet\n");
    tree_.MakeFolder("/sys/class/net/eth0");
  }
  void Entry(int place, const std::string& type, const std::string& gid,
             const std::string& netdev = "") {
    tree_.Write(absl::StrCat(kPort, "/gid_attrs/types/", place), type);
    tree_.Write(absl::StrCat(kPort, "/gids/", place), gid + "\n");
    tree_.Write(absl::StrCat(kPort, "/gid_attrs/ndevs/", place), netdev + "\n");
  }
  PortAddresses Read() { return ReadPortAddresses(*RootFiles::Open(tree_.root()), "mlx5_0", 1); }

  testing::SysfsTree tree_;
};

TEST_F(GidTableTest, ReadsEntriesInUseAndWhoseTheyAre) {
  Entry(0, "IB/RoCE v1\n", kLocal, "eth0");
  Entry(1, "RoCE v2\n", kLocal, "eth0");
  Entry(2, "", kZero);
  EXPECT_EQ(Read(), (PortAddresses{AddressKind::kLinkLocal, AddressKind::kUnknown, "", false}));
  Entry(10, "RoCE v2\n", kTenNet, "net1");
  EXPECT_EQ(Read().pod, AddressKind::kRoutable) << "no such interface on the host";
  Entry(11, "RoCE v2\n", kTenNet, "eth0");
  EXPECT_EQ(Read(),
            (PortAddresses{AddressKind::kRoutable, AddressKind::kRoutable, kTenNet, false}));
}

TEST_F(GidTableTest, VersionOneAndEmptyEntriesDoNotCount) {
  Entry(0, "IB/RoCE v1\n", kTenNet, "eth0");
  Entry(1, "RoCE v2\n", kZero, "eth0");
  Entry(2, "\x01", kTenNet, "eth0");
  EXPECT_EQ(Read(), (PortAddresses{AddressKind::kNone, AddressKind::kUnknown, "", false}));
}

TEST_F(GidTableTest, ATableWithoutAPlaceIsTold) {
  tree_.MakeFolder(std::string(kPort) + "/gid_attrs/types");
  EXPECT_TRUE(Read().no_table);
}

TEST_F(GidTableTest, OthersHaveNoSuchTable) {
  EXPECT_EQ(Read(), PortAddresses{}) << "the table cannot be seen";
  Entry(0, "RoCE v2\n", kTenNet);
  EXPECT_EQ(Read().host, AddressKind::kRoutable);
  tree_.Write(std::string(kDevice) + "/node_type", "4: RNIC\n");
  EXPECT_EQ(Read(), PortAddresses{});
  tree_.Write(std::string(kDevice) + "/node_type", "1: CA\n");
  tree_.Write(std::string(kPort) + "/link_layer", "InfiniBand\n");
  EXPECT_EQ(Read(), PortAddresses{});
}

}  // namespace
}  // namespace railhead::fabric
