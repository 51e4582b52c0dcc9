// SPDX-License-Identifier: Apache-2.0
#include "base/yaml/scalar.h"

#include <gtest/gtest.h>

#include <optional>

namespace railhead {
namespace {

TEST(ScalarTest, NumbersAreThoseOfYaml) {
  for (const char* number : {"0", "12", "-12", "+3", "1.5", ".5", "1.", "-1.5e3", "2E-7", "0x1F",
                             "0o17", ".inf", "-.Inf", "+.INF", ".NaN"}) {
    EXPECT_TRUE(IsYamlNumber(number)) << number;
  }
  for (const char* text : {"", "-", ".", "e", "+-1", "1-2", "12a", "a12", "1.2.3", "0x", "0xg",
                           "inf", "nan", "infinity", ".info", "1 2", "1_000"}) {
    EXPECT_FALSE(IsYamlNumber(text)) << text;
  }
}

TEST(ScalarTest, BooleansAreThoseOfYaml12) {
  for (const char* boolean : {"true", "True", "TRUE", "false", "False"}) {
    EXPECT_TRUE(IsYamlBoolean(boolean)) << boolean;
  }
  for (const char* text : {"", "yes", "no", "on", "t", "truer", "falsely"}) {
    EXPECT_FALSE(IsYamlBoolean(text)) << text;
  }
}

TEST(ScalarTest, IntegersAreDecimalWithoutLeadingZerosAndWithinTheirBounds) {
  EXPECT_EQ(YamlInteger("0", 0, 9), 0);
  EXPECT_EQ(YamlInteger("9", 0, 9), 9);
  EXPECT_EQ(YamlInteger("1", 1, 9), 1);
  for (const char* text : {"", "10", "-1", "+1", "01", "00", "1.0", "1e0", "0x1", " 1", "one"}) {
    EXPECT_EQ(YamlInteger(text, 0, 9), std::nullopt) << text;
  }
  EXPECT_EQ(YamlInteger("0", 1, 9), std::nullopt);
  EXPECT_EQ(YamlInteger("99999999999999999999", 0, 9), std::nullopt);
}

}  // namespace
}  // namespace railhead
