// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/fields.h"

#include <gtest/gtest.h>

namespace railhead::op {
namespace {

using kube::Json;

TEST(FieldsTest, BoundsOfIntegersAreWithinThem) {
  EXPECT_EQ(ReadInteger(Json(3), "spec.count", 3, 5).value_or(0), 3);
  EXPECT_EQ(ReadInteger(Json(5), "spec.count", 3, 5).value_or(0), 5);
  for (const Json& value : {Json(2), Json(6), Json(4.0), Json("4"), Json(true), Json()}) {
    EXPECT_EQ(ReadInteger(value, "spec.count", 3, 5).status(),
              absl::InvalidArgumentError("spec.count: must be a whole number from 3 to 5"))
        << value;
  }
}

TEST(FieldsTest, TextsAreTextsWithoutZeroBytes) {
  EXPECT_EQ(ReadString(Json("a"), "spec.name").value_or(""), "a");
  EXPECT_EQ(ReadString(Json(1), "spec.name").status(),
            absl::InvalidArgumentError("spec.name: must be a string; put it in quotes"));
  EXPECT_EQ(ReadString(Json(std::string("a\0b", 3)), "spec.name").status(),
            absl::InvalidArgumentError("spec.name: must not have a zero byte"));
}

TEST(FieldsTest, NullIsAbsent) {
  const Json object = {{"null", nullptr}, {"zero", 0}};
  EXPECT_EQ(Member(object, "null"), nullptr);
  EXPECT_EQ(Member(object, "other"), nullptr);
  ASSERT_NE(Member(object, "zero"), nullptr);
  EXPECT_EQ(*Member(object, "zero"), 0);
}

TEST(FieldsTest, ErrorsNameTheirField) {
  EXPECT_EQ(FieldError("", "is wrong"), absl::InvalidArgumentError("the object is wrong"));
  EXPECT_EQ(JoinPath("", "spec"), "spec");
  EXPECT_EQ(JoinPath("spec", "nccl"), "spec.nccl");
  EXPECT_TRUE(CheckMembers({{"a", 1}}, "spec", {"a", "b"}).ok());
  const absl::Status unknown = CheckMembers({{"c", 1}}, "spec", {"a", "b"});
  EXPECT_EQ(unknown.message().substr(0, 8), "spec.c: ") << unknown;
  EXPECT_EQ(CheckMembers(Json(1), "spec", {}),
            absl::InvalidArgumentError("spec: must be an object with fields"));
}

}  // namespace
}  // namespace railhead::op
