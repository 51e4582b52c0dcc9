// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/wire.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace railhead {
namespace {

TEST(WireTest, WhatIsWrittenIsRead) {
  WireWriter writer;
  writer.U8(0xfe);
  writer.U16(0xfedc);
  writer.U32(0xfedcba98);
  writer.U64(0xfedcba9876543210);
  writer.String("rail");
  writer.Raw("xyz");
  const std::string bytes = writer.Take();
  EXPECT_EQ(bytes.size(), 1 + 2 + 4 + 8 + 4 + 4 + 3U);

  WireReader reader(bytes);
  EXPECT_EQ(reader.U8(), 0xfe);
  EXPECT_EQ(reader.U16(), 0xfedc);
  EXPECT_EQ(reader.U32(), 0xfedcba98);
  EXPECT_EQ(reader.U64(), 0xfedcba9876543210);
  EXPECT_EQ(reader.String(4), "rail");
  EXPECT_FALSE(reader.Complete());
  EXPECT_EQ(std::string(reader.Raw(3)), "xyz");
  EXPECT_TRUE(reader.Complete());
}

TEST(WireTest, IntegersAreLittleEndian) {
  WireWriter writer;
  writer.U32(0x01020304);
  EXPECT_EQ(writer.Take(), std::string("\x04\x03\x02\x01", 4));
}

TEST(WireTest, ShortInputIsRefusedAndStaysRefused) {
  WireReader reader(absl::string_view("\x01\x02\x03", 3));
  EXPECT_EQ(reader.U32(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.U8(), 0U);  // there would be three bytes, but the structure is already broken
  EXPECT_FALSE(reader.Complete());
}

TEST(WireTest, LengthBeyondTheInputOrTheLimitIsRefused) {
  WireWriter lying;
  lying.U32(1000);
  lying.Raw("short");
  const std::string lie = lying.Take();
  WireReader first(lie);
  EXPECT_EQ(first.String(4096), "");
  EXPECT_FALSE(first.ok());

  WireWriter big;
  big.String("0123456789");
  const std::string bytes = big.Take();
  WireReader second(bytes);
  second.String(9);
  EXPECT_FALSE(second.ok());
}

TEST(WireTest, RandomBytesNeverReadPastTheEnd) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    WireReader reader(bytes);
    size_t taken = 0;
    for (int i = 0; i < 20 && reader.ok(); ++i) taken += reader.String(1 << 20).size();
    EXPECT_LE(taken, bytes.size());
  }
}

}  // namespace
}  // namespace railhead
