// SPDX-License-Identifier: Apache-2.0
//
// Sizes and offsets of NCCL's tables and properties, as debuggers print them from the debug
// information of NCCL 2.30.7 (`ptype /o ncclNet_v12_t`).
#include <gtest/gtest.h>

#include <cstddef>

#include "plugins/nccl/abi/env.h"
#include "plugins/nccl/abi/net.h"
#include "plugins/nccl/abi/tuner.h"

namespace railhead::nccl::abi {
namespace {

static_assert(sizeof(PropertiesV6) == 48);
static_assert(sizeof(PropertiesV8) == 64);
static_assert(sizeof(PropertiesV9) == 104);
static_assert(sizeof(PropertiesV11) == 112);
static_assert(sizeof(PropertiesV12) == 128);
static_assert(sizeof(NetV6) == 136);
static_assert(sizeof(NetV8) == 152);
static_assert(sizeof(NetV9) == 160);
static_assert(sizeof(NetV10) == 160);
static_assert(sizeof(NetV11Table) == 176);
static_assert(sizeof(NetV12Table) == 176);
static_assert(sizeof(CommConfig) == 4);
static_assert(sizeof(EnvV1) == 32);
static_assert(sizeof(EnvV2) == 32);
static_assert(sizeof(TunerV2) == 32);
static_assert(sizeof(TunerV3) == 32);
static_assert(sizeof(TunerV4) == 32);
static_assert(sizeof(TunerV5) == 32);
static_assert(sizeof(TunerV6) == 40);

TEST(LayoutTest, FieldsAreWhereNcclLooks) {
  EXPECT_EQ(offsetof(PropertiesV6, speed), 28U);
  EXPECT_EQ(offsetof(PropertiesV8, speed), 32U);
  EXPECT_EQ(offsetof(PropertiesV9, forces_flush), 32U);
  EXPECT_EQ(offsetof(PropertiesV9, speed), 36U);
  EXPECT_EQ(offsetof(PropertiesV9, parts), 64U);
  EXPECT_EQ(offsetof(PropertiesV9, max_p2p_bytes), 88U);
  EXPECT_EQ(offsetof(PropertiesV11, max_requests_of_group), 104U);
  EXPECT_EQ(offsetof(PropertiesV12, max_p2p_bytes), 104U);
  EXPECT_EQ(offsetof(PropertiesV12, max_requests_of_group), 120U);
  EXPECT_EQ(offsetof(PropertiesV12, rail), 124U);
  EXPECT_EQ(offsetof(PropertiesV12, plane), 126U);
  EXPECT_EQ(offsetof(NetV6, test), 104U);
  EXPECT_EQ(offsetof(NetV8, irecv_consumed), 144U);
  EXPECT_EQ(offsetof(NetV9, make_virtual_device), 152U);
  EXPECT_EQ(offsetof(NetV10, isend), 80U);
  EXPECT_EQ(offsetof(NetV12Table, close_listen), 128U);
  EXPECT_EQ(offsetof(NetV12Table, set_net_attributes), 168U);
  EXPECT_EQ(offsetof(EnvV1, get_env), 24U);
  EXPECT_EQ(offsetof(EnvV2, finalize), 16U);
  EXPECT_EQ(offsetof(EnvV2, get_env), 24U);
  EXPECT_EQ(offsetof(TunerV2, get_collective_info), 16U);
  EXPECT_EQ(offsetof(TunerV3, destroy), 24U);
  EXPECT_EQ(offsetof(TunerV4, get_collective_info), 16U);
  EXPECT_EQ(offsetof(TunerV5, finalize), 24U);
  EXPECT_EQ(offsetof(TunerV6, get_collective_info), 16U);
  EXPECT_EQ(offsetof(TunerV6, get_chunk_size), 32U);
  EXPECT_EQ(kAllReduce, 4);
  EXPECT_EQ(kPat, 6);
  EXPECT_EQ(kSimple, 2);
}

}  // namespace
}  // namespace railhead::nccl::abi
