// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce_gids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fabric/inventory.h"
#include "fabric/root_files.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric {
namespace {

constexpr char kDevice[] = "/sys/class/infiniband/mlx5_0";
constexpr char kPort[] = "/sys/class/infiniband/mlx5_0/ports/1";

class RoceGidsTest : public ::testing::Test {
 protected:
  RoceGidsTest() {
    hca_.name = "mlx5_0";
    hca_.netdev = "eth0";
    hca_.ports = {{1, "ACTIVE", "Ethernet", 100}};
    tree_.Write(std::string(kDevice) + "/node_type", "1: CA\n");
  }
  void Entry(const std::string& place, const std::string& type, const std::string& gid) {
    tree_.Write(std::string(kPort) + "/gid_attrs/types/" + place, type);
    tree_.Write(std::string(kPort) + "/gids/" + place, gid);
  }
  std::string Trouble() { return RoceGidTrouble(*RootFiles::Open(tree_.root()), hca_); }

  testing::SysfsTree tree_;
  Hca hca_;
};

TEST_F(RoceGidsTest, AnEntryOfVersionTwoIsEnough) {
  Entry("0", "IB/RoCE v1\n", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
  Entry("3", "RoCE v2\n", "0000:0000:0000:0000:0000:ffff:0a0a:0001\n");
  EXPECT_EQ(Trouble(), "");
}

TEST_F(RoceGidsTest, VersionOneAndEmptyEntriesAreNot) {
  Entry("0", "IB/RoCE v1\n", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
  Entry("1", "RoCE v2\n", "0000:0000:0000:0000:0000:0000:0000:0000\n");
  Entry("2", "\x01", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
  EXPECT_EQ(
      Trouble(),
      "port 1 has no RoCE v2 entry in its GID table; give its interface eth0 an IP address, and "
      "check that it is up");
}

TEST_F(RoceGidsTest, APhysicalFunctionInSwitchdevModeHasNoTable) {
  tree_.MakeFolder(std::string(kPort) + "/gid_attrs/types");
  EXPECT_THAT(Trouble(), ::testing::HasSubstr("switchdev"));
}

TEST_F(RoceGidsTest, OthersHaveNoSuchTrouble) {
  EXPECT_EQ(Trouble(), "") << "the table cannot be seen";
  Entry("0", "", "");
  EXPECT_NE(Trouble(), "");
  tree_.Write(std::string(kDevice) + "/node_type", "4: RNIC\n");
  EXPECT_EQ(Trouble(), "");
  tree_.Write(std::string(kDevice) + "/node_type", "1: CA\n");
  hca_.ports[0].link_layer = "InfiniBand";
  EXPECT_EQ(Trouble(), "");
  hca_.ports.clear();
  EXPECT_EQ(Trouble(), "");
}

}  // namespace
}  // namespace railhead::fabric
