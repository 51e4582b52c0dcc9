// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/local.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "fabric/testing/sysfs_tree.h"

namespace railhead::preflight {
namespace {

using ::testing::ElementsAre;

class LocalTest : public ::testing::Test {
 protected:
  LocalTest() {
    fabric::testing::FakeHca hca;
    hca.name = "mlx5_3";
    hca.uverbs = 7;
    hca.pci = "0000:18:00.0";
    hca.netdev = "eth3";
    hca.link_layer = "Ethernet";
    tree_.AddHca(hca);
    tree_.Write("/sys/class/infiniband/mlx5_3/ports/1/phys_state", "5: LinkUp\n");
    rail_.rail = 3;
    rail_.device = "mlx5_3";
  }
  RailFacts Read() const { return ReadHca(tree_.root(), rail_); }

  fabric::testing::SysfsTree tree_;
  fabric::PodRail rail_;
};

TEST_F(LocalTest, ReadsAnHca) {
  const RailFacts facts = Read();
  EXPECT_EQ(rails::ToString(facts.name), "rail 3 (mlx5_3 port 1, verbs)");
  EXPECT_EQ(facts.state, "ACTIVE");
  EXPECT_EQ(facts.physical, "LinkUp");
  EXPECT_EQ(facts.rate, "400 Gb/sec (4X NDR)");
  EXPECT_EQ(facts.link_layer, "Ethernet");
  EXPECT_EQ(facts.device_node, "/dev/infiniband/uverbs7");
  EXPECT_EQ(facts.device_node_trouble, "");
  EXPECT_EQ(facts.ecn, "") << "there are no files about it";
  EXPECT_FALSE(facts.port.has_value());
}

TEST_F(LocalTest, TheRailsFileSaysWhichDeviceNode) {
  rail_.char_devices = {"/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs9"};
  EXPECT_EQ(Read().device_node, "/dev/infiniband/uverbs9");
  EXPECT_EQ(Read().device_node_trouble, "/dev/infiniband/uverbs9: No such file or directory");
}

TEST_F(LocalTest, EcnIsOnWhereBothRolesAre) {
  rail_.netdev = "eth3";
  const auto set = [&](const std::string& role, const std::string& priority, const char* value) {
    tree_.Write("/sys/class/net/eth3/ecn/" + role + "/enable/" + priority, value);
  };
  set("roce_rp", "3", "0\n");
  set("roce_np", "3", "1\n");
  EXPECT_EQ(Read().ecn, "off");
  set("roce_rp", "3", "1\n");
  EXPECT_EQ(Read().ecn, "on for priorities 3");
  set("roce_rp", "5", "1\n");
  set("roce_np", "5", "1\n");
  EXPECT_EQ(Read().ecn, "on for priorities 3, 5");
}

TEST_F(LocalTest, WhatIsNotThereIsEmpty) {
  rail_.device = "mlx5_9";
  const RailFacts facts = Read();
  EXPECT_EQ(facts.state + facts.physical + facts.rate + facts.device_node + facts.ecn, "");
  rail_.device = "../../etc";
  EXPECT_EQ(Read().state, "");
  EXPECT_EQ(ReadHca("/nowhere", rail_).rate, "");
}

TEST_F(LocalTest, ReadsAnInterface) {
  tree_.Write("/sys/class/net/eth0/operstate", "up\n");
  tree_.Write("/sys/class/net/eth0/speed", "25000\n");
  tree_.Write("/sys/class/net/eth0/mtu", "9000\n");
  const RailFacts eth0 = ReadInterface(tree_.root(), {0, "eth0", 0, "tcp"});
  EXPECT_EQ(eth0.state, "up");
  EXPECT_EQ(eth0.rate, "25000 Mb/s");
  ASSERT_TRUE(eth0.port.has_value());
  EXPECT_EQ(eth0.port->mtu, 9000);
  // The loopback, and interfaces of virtual machines.
  tree_.Write("/sys/class/net/lo/operstate", "unknown\n");
  tree_.Write("/sys/class/net/lo/speed", "-1\n");
  const RailFacts lo = ReadInterface(tree_.root(), {1, "lo", 0, "tcp"});
  EXPECT_EQ(lo.state, "up");
  EXPECT_EQ(lo.rate, "");
  EXPECT_FALSE(lo.port.has_value());
}

TEST_F(LocalTest, WhoMayLockMemoryHasNoLimit) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const rlimit little = {4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &little), 0);
  EXPECT_EQ(MemlockLimit(tree_.root()), 4096U) << "there is no /proc";
  tree_.Write("/proc/self/status", "Name:\tx\nCapEff:\t00000000a80425fb\n");
  EXPECT_EQ(MemlockLimit(tree_.root()), 4096U);
  tree_.Write("/proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\n");
  EXPECT_EQ(MemlockLimit(tree_.root()), kUnlimited);
  EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

TEST(GrownTest, IsWhatHasRisenApartFromBytesAndTicks) {
  fabric::PortCounters before;
  before.transmit_bytes = 1;
  before.transmit_waits = 1;
  before.cnp_sent = 5;
  before.retries = 5;
  before.symbol_errors = 5;
  fabric::PortCounters after = before;
  after.transmit_bytes = 100;
  after.transmit_waits = 100;
  after.cnp_sent = 7;
  after.symbol_errors = 4;
  after.receive_errors = 4;  // it was not there before
  EXPECT_THAT(Grown(before, after), ElementsAre(Growth{"cnp_sent", 2}));
}

}  // namespace
}  // namespace railhead::preflight
