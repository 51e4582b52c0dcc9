// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DraftTest, TheEditsArePatchAndObjectAlike) {
  const Json original = Json::parse(R"({"a": {"list": [1, 2]}, "none": null})");
  Draft draft(original);
  draft.Add("/a/list/0", 0);
  draft.Add("/a/b~1c", "x");
  EXPECT_TRUE(draft.Append("/a/list", 3).ok());
  EXPECT_TRUE(draft.Append("/none", "first").ok());
  EXPECT_TRUE(draft.Append("/none", "second").ok());
  EXPECT_TRUE(draft.Append("/absent", "first").ok());
  EXPECT_EQ(draft.object(), Json::parse(R"({"a": {"list": [0, 1, 2, 3], "b/c": "x"},
                                            "none": ["first", "second"], "absent": ["first"]})"));
  EXPECT_EQ(original.patch(draft.patch()), draft.object());
}

TEST(DraftTest, WhatIsNoListIsLeftAlone) {
  Draft draft(Json::parse(R"({"list": 7})"));
  const absl::Status status = draft.Append("/list", 1);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "/list is not a list");
  EXPECT_THAT(draft.patch(), IsEmpty());
  EXPECT_EQ(draft.At("/list/0"), nullptr);
  EXPECT_EQ(draft.At("/other/deep"), nullptr);
}

TEST(DraftTest, WarningsSayWhoseTheyAre) {
  Draft draft(Json::object());
  draft.Warn("no RANK");
  EXPECT_THAT(draft.warnings(), ElementsAre("railhead: no RANK"));
}

}  // namespace
}  // namespace railhead::op
