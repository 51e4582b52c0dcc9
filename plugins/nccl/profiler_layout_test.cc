// SPDX-License-Identifier: Apache-2.0
//
// Sizes and offsets of NCCL's profiler interface, as debuggers print them from the debug
// information of NCCL 2.32.3 (`ptype /o ncclProfilerEventDescr_v7_t`).
#include <gtest/gtest.h>

#include <cstddef>

#include "plugins/nccl/abi/profiler.h"

namespace railhead::nccl::abi {
namespace {

static_assert(sizeof(EventV1) == 120);
static_assert(sizeof(EventV2) == 128);
static_assert(sizeof(EventV3) == 120);
static_assert(sizeof(EventV4) == 104);
static_assert(sizeof(EventV5) == 112);
static_assert(sizeof(EventV6) == 112);
static_assert(sizeof(EventV7) == 136);
static_assert(sizeof(StateV1) == 16);
static_assert(sizeof(StateV4) == 8);
static_assert(sizeof(ProfilerV1Table) == 48);
static_assert(sizeof(ProfilerV2Table) == 48);
static_assert(sizeof(ProfilerV3Table) == 48);
static_assert(sizeof(ProfilerV4Table) == 48);
static_assert(sizeof(ProfilerV5Table) == 48);
static_assert(sizeof(ProfilerV6Table) == 48);
static_assert(sizeof(ProfilerV7Table) == 48);

TEST(ProfilerLayoutTest, FieldsAreWhereNcclWritesThem) {
  EXPECT_EQ(offsetof(EventV1, parent), 8U);
  EXPECT_EQ(offsetof(EventV1, rank), 16U);
  EXPECT_EQ(offsetof(EventV1, collective), 24U);
  EXPECT_EQ(offsetof(EventV1, collective.traffic_bytes), 0x60U);
  EXPECT_EQ(offsetof(EventV1, collective.algorithm), 0x6aU);
  EXPECT_EQ(offsetof(EventV1, collective.is_nvls), 0x70U);
  EXPECT_EQ(offsetof(EventV1, p2p.peer), 0x48U);
  EXPECT_EQ(offsetof(EventV1, proxy_op.is_send), 0x2cU);
  EXPECT_EQ(offsetof(EventV2, collective.protocol), 0x78U);
  EXPECT_EQ(offsetof(EventV2, p2p.peer), 0x48U);
  EXPECT_EQ(offsetof(EventV3, collective.protocol), 0x70U);
  EXPECT_EQ(offsetof(EventV3, net.data), 0x20U);
  EXPECT_EQ(offsetof(EventV4, collective.protocol), 0x60U);
  EXPECT_EQ(offsetof(EventV4, p2p.channels), 0x3cU);
  EXPECT_EQ(offsetof(EventV4, kernel.time), 0x20U);
  EXPECT_EQ(offsetof(EventV5, collective.parent_group), 0x68U);
  EXPECT_EQ(offsetof(EventV5, p2p.parent_group), 0x40U);
  EXPECT_EQ(offsetof(EventV5, collective_api.graph_captured), 0x40U);
  EXPECT_EQ(offsetof(EventV6, collective.parent_group), 0x68U);
  EXPECT_EQ(offsetof(EventV6, copy_collective.stream), 0x68U);
  EXPECT_EQ(offsetof(EventV6, copy_batch.syncs_in_batch), 0x28U);
  EXPECT_EQ(offsetof(EventV7, proxy_op.steps), 36U);
  EXPECT_EQ(offsetof(EventV7, proxy_op.chunk_bytes), 40U);
  EXPECT_EQ(offsetof(EventV7, collective.function), 32U);
  EXPECT_EQ(offsetof(EventV7, collective.count), 56U);
  EXPECT_EQ(offsetof(EventV7, collective.data_type), 72U);
  EXPECT_EQ(offsetof(EventV7, collective.algorithm), 88U);
  EXPECT_EQ(offsetof(EventV7, collective.parent_group), 104U);
  EXPECT_EQ(offsetof(EventV7, collective.kernel_variant), 112U);
  EXPECT_EQ(offsetof(EventV7, collective.user_tag), 128U);
  EXPECT_EQ(offsetof(EventV7, p2p.user_tag), 72U);
  EXPECT_EQ(offsetof(EventV7, collective_api.user_tag), 72U);
  EXPECT_EQ(offsetof(EventV7, p2p_api.user_tag), 64U);
  EXPECT_EQ(offsetof(EventV7, copy_collective.user_tag), 112U);
  EXPECT_EQ(offsetof(EventV7, kernel_phase.time), 40U);
  EXPECT_EQ(offsetof(ProfilerV7Table, init), 8U);
  EXPECT_EQ(offsetof(ProfilerV7Table, start), 16U);
  EXPECT_EQ(offsetof(ProfilerV7Table, stop), 24U);
  EXPECT_EQ(offsetof(ProfilerV7Table, record), 32U);
  EXPECT_EQ(offsetof(ProfilerV7Table, finalize), 40U);
}

}  // namespace
}  // namespace railhead::nccl::abi
