// SPDX-License-Identifier: Apache-2.0
#include "kube/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace railhead::kube {
namespace {

using ::testing::HasSubstr;

TEST(ParseYamlTest, ResolvesScalarsLikeKubernetes) {
  const auto documents = ParseYaml(R"(
quoted: "106"
number: 106
negative: -1
real: 2.5
exponent: 1e3
yes: true
nothing: ~
empty:
octal: 0777
hex: 0x1f
version: 1.2.3
text: some words
list: [a, 1, {b: c}]
)");
  ASSERT_TRUE(documents.ok()) << documents.status();
  ASSERT_EQ(documents->size(), 1U);
  EXPECT_EQ((*documents)[0], Json::parse(R"({
    "quoted": "106", "number": 106, "negative": -1, "real": 2.5, "exponent": 1000.0, "yes": true,
    "nothing": null, "empty": null, "octal": "0777", "hex": "0x1f", "version": "1.2.3",
    "text": "some words", "list": ["a", 1, {"b": "c"}]})"));
}

TEST(ParseYamlTest, TakesSeveralDocumentsAndJson) {
  const auto documents = ParseYaml("---\na: 1\n---\n---\n{\"b\": [2]}\n");
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_EQ(Json(*documents), Json::parse(R"([{"a":1},{"b":[2]}])"));
}

TEST(ParseYamlTest, NamesTheLineOfADefect) {
  for (const auto& [text, line] : {std::pair<std::string, std::string>{"a: 1\nb: [", "line 2"},
                                   {"a: 1\n\na: 2\n", "line 3"},
                                   {"[1]: 2\n", "line 1"},
                                   {"a: b: c\n", "line 1"}}) {
    const auto documents = ParseYaml(text);
    ASSERT_FALSE(documents.ok()) << text;
    EXPECT_EQ(documents.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(documents.status().message()), HasSubstr(line)) << text;
  }
}

// yaml-cpp by itself makes empty documents of these until memory ends.
TEST(ParseYamlTest, RefusesAStrayComma) {
  for (const auto& [text, line] : {std::pair<std::string, std::string>{",", "line 1"},
                                   {", a: b", "line 1"},
                                   {"# c\n, a}\n---\na: b\n", "line 2"},
                                   {"[a, b]\n, c\n", "line 2"}}) {
    const auto documents = ParseYaml(text);
    ASSERT_FALSE(documents.ok()) << text;
    EXPECT_THAT(std::string(documents.status().message()), HasSubstr(line)) << text;
  }
  for (const char* text : {"", "# c", "---\n---\n", "---\n# c\n---\na: b\n", "a: b\n...\n"}) {
    EXPECT_TRUE(ParseYaml(text).ok()) << text;
  }
}

TEST(ParseYamlTest, BoundsTheExpansionOfAliases) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int n = 0; n < 10; ++n) bomb += (n == 0 ? "" : ", ") + last;
    bomb += "]\n";
  }
  EXPECT_FALSE(ParseYaml(bomb).ok());
  EXPECT_FALSE(ParseYaml("&a [*a]").ok());
  EXPECT_FALSE(ParseYaml(std::string(100'000, '[')).ok());
}

}  // namespace
}  // namespace railhead::kube
