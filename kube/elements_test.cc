// SPDX-License-Identifier: Apache-2.0
#include "kube/elements.h"

#include <gtest/gtest.h>

#include <string>

namespace railhead::kube {
namespace {

TEST(ElementsAtTest, ListsAlone) {
  const Json object = Json::parse(R"({"spec": {"ports": [1, 2], "host": "h", "none": null}})");
  int sum = 0;
  for (const Json& port : ElementsAt(object, {"spec", "ports"})) sum += port.get<int>();
  EXPECT_EQ(sum, 3);
  for (const char* other : {"host", "none", "absent"}) {
    EXPECT_TRUE(ElementsAt(object, {"spec", other}).empty()) << other;
  }
  EXPECT_TRUE(ElementsAt(object, {"absent", "ports"}).empty());
  EXPECT_EQ(ElementsAt(object["spec"]["ports"], {}).size(), 2U);
}

TEST(FindConditionTest, TheFirstOfItsType) {
  const Json node = Json::parse(R"({"status": {"conditions": [7, {"status": "False"},
      {"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]}})");
  const Json* ready = FindCondition(node, "Ready");
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(StringAt(*ready, {"status"}), "True");
  EXPECT_EQ(FindCondition(node, "Other"), nullptr);
  EXPECT_EQ(FindCondition(Json::parse("[]"), "Ready"), nullptr);
}

}  // namespace
}  // namespace railhead::kube
