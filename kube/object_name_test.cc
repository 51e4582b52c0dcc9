// SPDX-License-Identifier: Apache-2.0
#include "kube/object_name.h"

#include <gtest/gtest.h>

#include <string>

#include "kube/testing/hostile_texts.h"

namespace railhead::kube {
namespace {

TEST(ObjectNameTest, NamesAreNamesAndNothingElseIs) {
  for (const char* name : {"a", "0", "train-0", "my.pod", "A_label.Value", "n-1-x7k2p"}) {
    EXPECT_TRUE(IsObjectName(name)) << name;
  }
  EXPECT_TRUE(IsObjectName(std::string(253, 'a')));
  for (const char* name : {"", "-a", ".", "_a", "a/b", "a b", "a:b", "a=b", "\xc3\xa9"}) {
    EXPECT_FALSE(IsObjectName(name)) << name;
  }
  for (const std::string& text : HostileTexts()) EXPECT_FALSE(IsObjectName(text)) << text;
}

}  // namespace
}  // namespace railhead::kube
