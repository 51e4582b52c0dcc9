// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/start.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace railhead::comm {
namespace {

TEST(StartTest, SaysWhatWasGivenAndWhatItCameTo) {
  SetupOptions options;
  options.root = "/nowhere";
  options.settings.transport = config::TransportChoice::kVerbs;
  options.settings.pod = "train-3";
  Fabric fabric;
  fabric.rails = {{0, "mlx5_0", 1, "verbs"}};
  fabric.decision.fallback = config::Fallback::kFail;
  preflight::RailFacts good;
  good.name = {0, "mlx5_0", 1, "verbs"};
  good.link_layer = "InfiniBand";
  good.rate = "400 Gb/sec (4X NDR)";
  good.port.emplace().mtu = 4096;
  preflight::RailFacts bad;
  bad.name = {1, "mlx5_1", 1, "verbs"};
  bad.state = "DOWN";
  bad.trouble = "port 1 is DOWN";
  fabric.facts.rails = {good, bad};
  fabric.facts.registers = 3000;
  fabric.facts.least_bytes = 2000;

  metrics::Start start = DescribeStart(options, fabric, 8);
  EXPECT_EQ(start.world_size, 8);
  EXPECT_EQ(start.pod, "train-3");
  EXPECT_EQ(start.transport, "verbs");
  EXPECT_EQ(start.requested, "verbs");
  EXPECT_EQ(start.fallback, "fail");
  EXPECT_EQ(start.trouble, "");
  EXPECT_EQ(start.unauthenticated, "");
  ASSERT_EQ(start.rails.size(), 2U);
  EXPECT_EQ(start.rails[0].name.device, "mlx5_0");
  EXPECT_EQ(start.rails[0].link_layer, "InfiniBand");
  EXPECT_EQ(start.rails[0].rate, "400 Gb/sec (4X NDR)");
  EXPECT_EQ(start.rails[0].mtu, 4096);
  EXPECT_EQ(start.rails[0].trouble + start.rails[0].cause, "");
  EXPECT_EQ(start.rails[1].name.rail, 1);
  EXPECT_EQ(start.rails[1].mtu, 0);
  EXPECT_EQ(start.rails[1].trouble, "port 1 is DOWN");
  EXPECT_EQ(start.rails[1].cause, "port");
  EXPECT_EQ(start.memlock, std::nullopt);
  EXPECT_EQ(start.registers, 3000U);
  EXPECT_EQ(start.least_bytes, 2000U);
  EXPECT_EQ(start.shared_memory, std::nullopt);

  fabric.facts.memlock = 8388608;
  fabric.trouble = "it was given no RDMA device";
  options.no_secret_cause = "the pod has no controller";
  start = DescribeStart(options, fabric, 8);
  EXPECT_EQ(start.memlock, 8388608U);
  EXPECT_EQ(start.trouble, fabric.trouble);
  EXPECT_EQ(start.unauthenticated, "the pod has no controller");

  fabric.decision.shm = true;
  start = DescribeStart(options, fabric, 8);
  EXPECT_EQ(start.registers + start.least_bytes, 0U) << "nothing is pinned";
}

TEST(StartTest, SharedMemoryIsAsLargeAsItsFileSystem) {
  EXPECT_EQ(SharedMemorySize("/nowhere"), std::nullopt);
  const std::optional<uint64_t> size = SharedMemorySize("/");
  ASSERT_TRUE(size.has_value());
  EXPECT_EQ(*size, std::filesystem::space("/dev/shm").capacity);
}

}  // namespace
}  // namespace railhead::comm
