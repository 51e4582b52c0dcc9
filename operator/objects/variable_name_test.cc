// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/variable_name.h"

#include <gtest/gtest.h>

#include <string>

namespace railhead::op {
namespace {

TEST(IsVariableNameTest, TakesWhatAShellCanSet) {
  for (const char* name : {"A", "_", "NCCL_IB_TC", "a1"}) EXPECT_TRUE(IsVariableName(name));
  for (const char* name : {"", "1A", "A-B", "A B", "A=", "\xc3\xa4"}) {
    EXPECT_FALSE(IsVariableName(name)) << name;
  }
  EXPECT_TRUE(IsVariableName(std::string(128, 'A')));
  EXPECT_FALSE(IsVariableName(std::string(129, 'A')));
}

TEST(IsComputedVariableTest, KnowsItsOwn) {
  EXPECT_TRUE(IsComputedVariable("RANK"));
  EXPECT_TRUE(IsComputedVariable("NCCL_IB_HCA"));
  EXPECT_FALSE(IsComputedVariable("NCCL_DEBUG"));
}

}  // namespace
}  // namespace railhead::op
