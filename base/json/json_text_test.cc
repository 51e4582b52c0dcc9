// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace railhead {
namespace {

using ::testing::HasSubstr;

std::string ReadError(const std::string& text) {
  const auto values = ParseJsonTexts(text, "a.json");
  EXPECT_FALSE(values.ok()) << text;
  return std::string(values.status().message());
}

TEST(JsonText, SeveralTextsKnowTheirLines) {
  const auto values =
      ParseJsonTexts("{\"a\": [1, -2.5,\n true]}\n\n{\"b\": {\"c\":\n \"x\"}}", "f");
  ASSERT_TRUE(values.ok()) << values.status();
  ASSERT_EQ(values->size(), 2);
  const JsonValue* list = (*values)[0].Find("a");
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->fields.size(), 3);
  EXPECT_EQ(list->fields[1].value.text, "-2.5");
  EXPECT_EQ(list->fields[2].value.line, 2);
  EXPECT_EQ((*values)[1].line, 4);
  EXPECT_EQ((*values)[1].Find("b")->Find("c")->text, "x");
  EXPECT_EQ((*values)[1].Find("b")->Find("c")->line, 5);
  EXPECT_EQ((*values)[1].Find("a"), nullptr);
}

TEST(JsonText, WhatIsSkippedIsCheckedAndNotKept) {
  const std::string text = R"({"a": {"images": [{"a": [1]}], "b": 1}, "images": 3, "c": 2})";
  const auto values = ParseJsonTexts(text, "f", {"images"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->front().fields.size(), 2);
  EXPECT_EQ(values->front().Find("a")->fields.size(), 1);
  EXPECT_EQ(values->front().Find("c")->text, "2");
  EXPECT_FALSE(ParseJsonTexts(R"({"images": [1,}]})", "f", {"images"}).ok());
}

TEST(JsonText, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_THAT(ReadError("{\"a\": 1,\n \"b\": }"),
              HasSubstr("a.json:2: the document: is no JSON at "));
  EXPECT_THAT(ReadError("{\"a\": 1}\n{\"b\":"), HasSubstr("a.json:2: the document: is no JSON"));
  EXPECT_THAT(ReadError("\"text\""),
              HasSubstr("a.json:1: the document: is not a JSON object or list"));
  EXPECT_THAT(ReadError("{\"a\": \"\xff\"}"), HasSubstr("a.json:1: the document: is no JSON"));
  EXPECT_THAT(ReadError(std::string(70, '[')), HasSubstr("nests deeper than 64"));
}

TEST(JsonText, ReaderKeepsTheFirstFault) {
  const auto values = ParseJsonTexts("{\"n\": \"x\",\n\"m\": \"a\\u0001b\"}", "f");
  ASSERT_TRUE(values.ok());
  JsonReader reader("f");
  EXPECT_EQ(reader.Find(values->front(), "top", "none", JsonValue::Type::kText), nullptr);
  EXPECT_TRUE(reader.status().ok());
  EXPECT_EQ(reader.Name(*values->front().Find("m"), "top.m"), "a\\x01b");
  reader.Need(values->front(), "top", "n", JsonValue::Type::kNumber);
  EXPECT_THAT(reader.status().message(), HasSubstr("f:1: top.n: must be a number"));
}

}  // namespace
}  // namespace railhead
