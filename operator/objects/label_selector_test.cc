// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/label_selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::StartsWith;

LabelSelector Parse(const char* text) {
  const absl::StatusOr<LabelSelector> selector = ParseLabelSelector(Json::parse(text), "s");
  EXPECT_TRUE(selector.ok()) << selector.status();
  return selector.ok() ? *selector : LabelSelector();
}

TEST(LabelSelectorTest, EmptyMatchesEverything) {
  for (const char* text : {"{}", R"({"matchLabels": null, "matchExpressions": []})"}) {
    EXPECT_TRUE(Parse(text).Matches({})) << text;
    EXPECT_TRUE(Parse(text).Matches({{"a", "b"}})) << text;
  }
}

// What Kubernetes says of each operator, for a label that is absent, of another value, and right.
TEST(LabelSelectorTest, OperatorsMeanWhatTheApiSays) {
  const struct {
    const char* expression;
    bool absent;
    bool other;
    bool right;
  } kCases[] = {
      {R"({"key": "k", "operator": "In", "values": ["v", "w"]})", false, false, true},
      {R"({"key": "k", "operator": "NotIn", "values": ["v", "w"]})", true, true, false},
      {R"({"key": "k", "operator": "Exists"})", false, true, true},
      {R"({"key": "k", "operator": "DoesNotExist", "values": []})", true, false, false},
  };
  for (const auto& expected : kCases) {
    const LabelSelector selector =
        Parse((std::string(R"({"matchExpressions": [)") + expected.expression + "]}").c_str());
    EXPECT_EQ(selector.Matches({{"else", "v"}}), expected.absent) << expected.expression;
    EXPECT_EQ(selector.Matches({{"k", "x"}}), expected.other) << expected.expression;
    EXPECT_EQ(selector.Matches({{"k", "v"}}), expected.right) << expected.expression;
  }
}

TEST(LabelSelectorTest, AllOfItMustHold) {
  const LabelSelector selector = Parse(R"({"matchLabels": {"a": "1", "b": "2"},
    "matchExpressions": [{"key": "c", "operator": "Exists"},
                         {"key": "d", "operator": "DoesNotExist"}]})");
  const Labels right = {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"e", "4"}};
  EXPECT_TRUE(selector.Matches(right));
  for (const char* key : {"a", "b", "c"}) {
    Labels missing = right;
    missing.erase(key);
    EXPECT_FALSE(selector.Matches(missing)) << key;
  }
  Labels more = right;
  more["d"] = "";
  EXPECT_FALSE(selector.Matches(more));
  more = right;
  more["a"] = "2";
  EXPECT_FALSE(selector.Matches(more));
}

TEST(LabelSelectorTest, RefusalsBeginWithTheField) {
  const struct {
    const char* text;
    const char* path;
  } kCases[] = {
      {"[]", "s: must be an object"},
      {R"({"matchLabel": {}})", "s.matchLabel: this field is not known; did you mean matchLabels?"},
      {R"({"matchLabels": ["a"]})", "s.matchLabels: must"},
      {R"({"matchLabels": {"a": 1}})", "s.matchLabels[a]: must be a string"},
      {R"({"matchExpressions": {}})", "s.matchExpressions: must be a list"},
      {R"({"matchExpressions": [7]})", "s.matchExpressions[0]: must be an object"},
      {R"({"matchExpressions": [{"operator": "Exists"}]})",
       "s.matchExpressions[0].key: is missing"},
      {R"({"matchExpressions": [{"key": "", "operator": "Exists"}]})", "s.matchExpressions[0].key"},
      {R"({"matchExpressions": [{"key": "a"}]})", "s.matchExpressions[0].operator: must be In"},
      {R"({"matchExpressions": [{"key": "a", "operator": "in"}]})",
       "s.matchExpressions[0].operator: must be In"},
      {R"({"matchExpressions": [{"key": "a", "operator": "In"}]})", "s.matchExpressions[0].values"},
      {R"({"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]})",
       "s.matchExpressions[0].values[0]: must be a string"},
      {R"({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]})",
       "s.matchExpressions[0].values: must be empty"},
      {R"({"matchExpressions": [{"key": "a", "operator": "Exists", "x": 1}]})",
       "s.matchExpressions[0].x: this field is not known"},
  };
  for (const auto& wrong : kCases) {
    const absl::Status status = ParseLabelSelector(Json::parse(wrong.text), "s").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong.text;
    EXPECT_THAT(std::string(status.message()), StartsWith(wrong.path));
  }
}

TEST(LabelsOfTest, TakesTextAlone) {
  EXPECT_EQ(LabelsOf(Json::parse(R"({"metadata": {"labels": {"a": "b", "c": 1, "d": null}}})")),
            (Labels{{"a", "b"}}));
  for (const char* text : {"null", "{}", R"({"metadata": {"labels": []}})", R"({"metadata": 3})"}) {
    EXPECT_EQ(LabelsOf(Json::parse(text)), Labels()) << text;
  }
}

// All labels over one key that can make a difference: none, the values that selectors name,
// another.
const std::vector<Labels>& AllLabels() {
  static const auto* const kAll =
      new std::vector<Labels>{{}, {{"k", "a"}}, {{"k", "b"}}, {{"k", "other"}}};
  return *kAll;
}

// All selectors of up to so many expressions over one key.
std::vector<LabelSelector> AllSelectors(int expressions) {
  using Operator = LabelSelector::Operator;
  const std::vector<LabelSelector::Expression> all = {
      {"k", Operator::kIn, {"a"}},         {"k", Operator::kIn, {"b"}},
      {"k", Operator::kIn, {"a", "b"}},    {"k", Operator::kNotIn, {"a"}},
      {"k", Operator::kNotIn, {"a", "b"}}, {"k", Operator::kExists, {}},
      {"k", Operator::kDoesNotExist, {}}};
  std::vector<LabelSelector> selectors(1);
  for (size_t begin = 0; expressions > 0; --expressions) {
    const size_t end = selectors.size();
    for (; begin < end; ++begin) {
      for (const auto& one : all) {
        selectors.push_back(selectors[begin]);
        selectors.back().expressions.push_back(one);
      }
    }
  }
  selectors.push_back({{{"k", "a"}}, {}});
  return selectors;
}

TEST(LabelSelectorTest, KnowsWhetherTwoCanMatchTheSame) {
  const std::vector<LabelSelector> selectors = AllSelectors(2);
  int possible = 0;
  for (const LabelSelector& a : selectors) {
    for (const LabelSelector& b : selectors) {
      bool wanted = false;
      for (const Labels& labels : AllLabels()) {
        wanted = wanted || (a.Matches(labels) && b.Matches(labels));
      }
      EXPECT_EQ(CanBothMatch(a, b), wanted);
      possible += wanted ? 1 : 0;
    }
  }
  EXPECT_GT(possible, 100);
  EXPECT_LT(possible, static_cast<int>(selectors.size() * selectors.size()) - 100);
  // Keys do not depend on each other.
  EXPECT_TRUE(CanBothMatch({{{"app", "a"}}, {}}, {{{"team", "b"}}, {}}));
  EXPECT_FALSE(CanBothMatch({{{"app", "a"}, {"x", "1"}}, {}}, {{{"app", "b"}, {"x", "1"}}, {}}));
}

TEST(LabelSelectorTest, KnowsWhetherAThirdMatchesAllThatTwoMatch) {
  int covered = 0;
  int asked = 0;
  for (const LabelSelector& wide : AllSelectors(2)) {
    for (const LabelSelector& a : AllSelectors(2)) {
      for (const LabelSelector& b : AllSelectors(1)) {
        bool wanted = true;
        for (const Labels& labels : AllLabels()) {
          wanted = wanted && (wide.Matches(labels) || !a.Matches(labels) || !b.Matches(labels));
        }
        ASSERT_EQ(MatchesAllOfBoth(wide, a, b), wanted);
        covered += wanted && CanBothMatch(a, b) ? 1 : 0;
        ++asked;
      }
    }
  }
  EXPECT_GT(covered, 1000);
  EXPECT_LT(covered, asked - 1000);
  // Keys do not depend on each other.
  const LabelSelector a = {{{"app", "a"}}, {}};
  const LabelSelector b = {{{"team", "b"}}, {}};
  EXPECT_TRUE(MatchesAllOfBoth({{{"app", "a"}, {"team", "b"}}, {}}, a, b));
  EXPECT_FALSE(MatchesAllOfBoth({{{"app", "a"}, {"team", "c"}}, {}}, a, b));
  EXPECT_FALSE(MatchesAllOfBoth({{{"zone", "z"}}, {}}, a, b));
}

}  // namespace
}  // namespace railhead::op
