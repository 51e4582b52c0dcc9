// SPDX-License-Identifier: Apache-2.0
#include "base/yaml/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace railhead {
namespace {

using ::testing::HasSubstr;
using Type = YamlDocument::Type;

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<YamlDocument> document = YamlDocument::Parse(text, "f.yaml");
  EXPECT_TRUE(absl::IsInvalidArgument(document.status())) << text;
  return std::string(document.status().message());
}

TEST(YamlDocument, ValuesKnowTheirLineAndTheirQuotes) {
  const absl::StatusOr<YamlDocument> document =
      YamlDocument::Parse("a: [1, '1', ~]\nb:\n  c: d\n", "f.yaml");
  ASSERT_TRUE(document.ok()) << document.status();
  const YamlDocument::Value root = document->root();
  ASSERT_EQ(root.type(), Type::kMap);
  ASSERT_EQ(root.size(), 2U);
  EXPECT_EQ(root.key(1).text(), "b");
  const YamlDocument::Value list = root.value(0);
  ASSERT_EQ(list.type(), Type::kList);
  ASSERT_EQ(list.size(), 3U);
  EXPECT_FALSE(list.at(0).quoted());
  EXPECT_TRUE(list.at(1).quoted());
  EXPECT_EQ(list.at(2).type(), Type::kNull);
  EXPECT_EQ(root.value(1).value(0).text(), "d");
  EXPECT_EQ(root.value(1).value(0).line(), 3);
}

TEST(YamlDocument, AnAliasIsTheSameValue) {
  const absl::StatusOr<YamlDocument> document =
      YamlDocument::Parse("a: &x [1, 2]\nb: *x\n", "f.yaml");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(document->root().value(1).size(), 2U);
}

TEST(YamlDocument, AnEmptyTextIsNull) {
  for (const char* text : {"", "# a comment\n", "---\n"}) {
    EXPECT_EQ(YamlDocument::Parse(text, "f.yaml")->root().type(), Type::kNull) << text;
  }
}

TEST(YamlDocument, WhatIsNoYamlIsRefusedWithItsLine) {
  EXPECT_THAT(ErrorOf("a: 1\nb: [\n"), HasSubstr("f.yaml:3: the document: is not YAML"));
  EXPECT_THAT(ErrorOf("a: 1\n---\nb: 1\n"), HasSubstr("f.yaml:2: the document: a second"));
  EXPECT_THAT(ErrorOf("a: 1\nb: \x04\n"), HasSubstr("f.yaml:2: the document: holds the control"));
  EXPECT_THAT(ErrorOf("a: &x [1, *x]\n"), HasSubstr("f.yaml:1: the document: an alias"));
  EXPECT_THAT(ErrorOf("a: *x\n"), HasSubstr("f.yaml:1:"));
  EXPECT_THAT(ErrorOf(std::string(100'000, '[')), HasSubstr("nests hundreds of levels"));
  EXPECT_THAT(ErrorOf(std::string(YamlDocument::kMaxText + 1, ' ')), HasSubstr("more than"));
}

}  // namespace
}  // namespace railhead
