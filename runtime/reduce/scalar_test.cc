// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace railhead::reduce {
namespace {

Scalar ScalarOf(rhDataType_t type, uint64_t bits) { return ReadScalar(type, &bits); }

TEST(ReadScalarTest, FloatsOfEveryFormat) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const struct {
    rhDataType_t type;
    uint64_t bits;
    double value;
  } cases[] = {
      {rhFloat64, 0xBFF8000000000000, -1.5},
      {rhFloat32, 0x3FC00000, 1.5},
      {rhFloat32, 0xBFC00000, -1.5},
      {rhFloat32, 0x00000001, std::ldexp(1, -149)},
      {rhFloat32, 0xFF800000, -kInfinity},
      {rhFloat16, 0x3C00, 1},
      {rhFloat16, 0xC000, -2},
      {rhFloat16, 0x0001, std::ldexp(1, -24)},
      {rhFloat16, 0x7BFF, 65504},
      {rhFloat16, 0x7C00, kInfinity},
      {rhBfloat16, 0x3F80, 1},
      {rhBfloat16, 0xC040, -3},
      {rhBfloat16, 0x8001, -std::ldexp(1, -133)},
      {rhBfloat16, 0xFF80, -kInfinity},
      {rhFloat8e4m3, 0x38, 1},
      {rhFloat8e4m3, 0xB8, -1},
      {rhFloat8e4m3, 0x01, std::ldexp(1, -9)},
      {rhFloat8e4m3, 0x7E, 448},
      {rhFloat8e5m2, 0x3C, 1},
      {rhFloat8e5m2, 0xBD, -1.25},
      {rhFloat8e5m2, 0x01, std::ldexp(1, -16)},
      {rhFloat8e5m2, 0x7B, 57344},
      {rhFloat8e5m2, 0xFC, -kInfinity},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(ScalarOf(one.type, one.bits).real, one.value) << one.type << " " << one.bits;
  }
}

TEST(ReadScalarTest, NotANumberOfEveryFormat) {
  EXPECT_TRUE(std::isnan(ScalarOf(rhFloat32, 0x7FC00000).real));
  EXPECT_TRUE(std::isnan(ScalarOf(rhFloat16, 0x7E00).real));
  EXPECT_TRUE(std::isnan(ScalarOf(rhBfloat16, 0xFFC0).real));
  EXPECT_TRUE(std::isnan(ScalarOf(rhFloat8e4m3, 0x7F).real));
  EXPECT_TRUE(std::isnan(ScalarOf(rhFloat8e5m2, 0x7D).real));
}

TEST(ReadScalarTest, OfAnIntegerItReadsItsOwnBytesOnly) {
  EXPECT_EQ(ScalarOf(rhInt8, 0x1234567890ABCDEF).integer, 0xEFU);
  EXPECT_EQ(ScalarOf(rhUint32, 0x1234567890ABCDEF).integer, 0x90ABCDEFU);
  EXPECT_EQ(ScalarOf(rhInt64, 0x9234567890ABCDEF).integer, 0x9234567890ABCDEFU);
}

}  // namespace
}  // namespace railhead::reduce
