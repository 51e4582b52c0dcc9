// SPDX-License-Identifier: Apache-2.0
#include "kube/json.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <string>
#include <vector>

namespace railhead::kube {
namespace {

TEST(ParseJsonTest, KeepsValues) {
  const auto parsed = ParseJson(R"({"a": {"b": ["x", 1, null]}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(DumpJson(*parsed), R"({"a":{"b":["x",1,null]}})");
}

TEST(ParseJsonTest, RefusesWhatIsNotJson) {
  const std::string invalid_utf8 = "\"\xff\"";
  for (const std::string& text : {std::string(), std::string("{"), std::string("{} {}"),
                                  std::string("nan"), std::string("1e999"), invalid_utf8}) {
    EXPECT_EQ(ParseJson(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ParseJsonTest, BoundsTheDepthButNotBracketsInsideStrings) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(ParseJson(nested(kMaxJsonDepth)).ok());
  EXPECT_FALSE(ParseJson(nested(kMaxJsonDepth + 1)).ok());
  EXPECT_FALSE(ParseJson(std::string(2'000'000, '[')).ok());
  EXPECT_TRUE(ParseJson("\"\\\"" + std::string(1000, '[') + "\"").ok());
}

TEST(DumpJsonTest, ReplacesInvalidUtf8) { EXPECT_EQ(DumpJson(Json("a\xff")), "\"a\xef\xbf\xbd\""); }

TEST(FindTest, NeverThrowsOnForeignShapes) {
  const Json document = Json::parse(R"({"a": {"b": "x"}, "n": 1, "l": [1]})");
  EXPECT_EQ(StringAt(document, {"a", "b"}), "x");
  EXPECT_EQ(StringAt(document, {"a"}), "");
  EXPECT_EQ(StringAt(document, {"n", "b"}), "");
  EXPECT_EQ(FindPath(document, {"l", "0"}), nullptr);
  EXPECT_EQ(Find(document, "zzz"), nullptr);
}

TEST(PointerTokenTest, EscapesTildeBeforeSlash) {
  EXPECT_EQ(PointerToken("a/b~c~1"), "a~1b~0c~01");
  const Json document = Json::object({{"a/b~c", 1}});
  EXPECT_EQ(document[Json::json_pointer("/" + PointerToken("a/b~c"))], 1);
}

// Visits of ParseJsonList, and the rest of the document or the error.
std::vector<std::string> Visited(const std::string& text, std::string& rest,
                                 const std::string& stop_at = "") {
  std::vector<std::string> visited;
  const auto parsed = ParseJsonList(text, "items", [&](const Json& object) -> absl::Status {
    visited.push_back(DumpJson(object));
    if (visited.back() == stop_at) return absl::AbortedError("enough");
    return absl::OkStatus();
  });
  rest = parsed.ok() ? DumpJson(*parsed) : std::string(parsed.status().message());
  return visited;
}

TEST(ParseJsonListTest, HandsOutTheObjectsOfTheListAndNoOthers) {
  std::string rest;
  EXPECT_EQ(Visited(R"({"metadata": {"a": {"b": {}}}, "items": [{"c": [{"d": {}}]}, {}, {"e": 1}],
                        "more": [{"f": 1}]})",
                    rest),
            (std::vector<std::string>{R"({"c":[{"d":{}}]})", "{}", R"({"e":1})"}));
  EXPECT_EQ(rest, R"({"items":[],"metadata":{"a":{"b":{}}},"more":[{"f":1}]})");
  EXPECT_TRUE(Visited(R"({"items": [1, [{"a": 1}], "x"]})", rest).empty());
  EXPECT_EQ(rest, R"({"items":[1,[{"a":1}],"x"]})");
  for (const char* const text : {R"([{"items": [{}]}])", R"({"a": {"items": [{}]}})", "7"}) {
    EXPECT_TRUE(Visited(text, rest).empty()) << text;
    EXPECT_EQ(rest, DumpJson(*ParseJson(text)));
  }
}

TEST(ParseJsonListTest, StopsAtTheFirstErrorOfEither) {
  std::string rest;
  EXPECT_EQ(Visited(R"({"items": [{"a": 1}, {"b": 2}, {"c": 3}]})", rest, R"({"b":2})").size(), 2);
  EXPECT_EQ(rest, "enough");
  EXPECT_EQ(Visited(R"({"items": [{"a": 1}, {"b": )", rest).size(), 1);
  EXPECT_EQ(rest, "not valid JSON (27 bytes)");
}

// What the parser really takes, by the heap's own count.
TEST(JsonTest, TreesTakeNoMoreThanTheirEstimate) {
  for (const std::string& element :
       {std::string("1"), std::string("[]"), std::string("{}"), std::string("\"\""),
        std::string("\"0123456789abcdef0123\""), std::string("[[1],[2]]"),
        std::string(R"({"a":1,"b":{"c":"d"},"0123456789abcdef":[]})")}) {
    std::string text = "[" + element;
    for (int i = 0; i < 20'000; ++i) text += "," + element;
    text += "]";
    const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    const absl::StatusOr<Json> tree = ParseJson(text);
    const size_t taken = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    ASSERT_TRUE(tree.ok());
    EXPECT_LE(taken, JsonTreeBytes(text)) << element;
    // A sanitizer's heap does not count.
    if (before > 0) {
      EXPECT_GE(4 * taken, JsonTreeBytes(text)) << element;
    }
  }
}

}  // namespace
}  // namespace railhead::kube
