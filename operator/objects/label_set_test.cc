// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/label_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::IsNull;
using ::testing::Pair;
using ::testing::Pointee;

TEST(LabelSetTest, IsLikeItsMap) {
  const Labels labels = {{"zone", "a"}, {"app", "x"}, {"b", ""}};
  const LabelSet set = labels;
  EXPECT_THAT(set, ElementsAre(Pair("app", "x"), Pair("b", ""), Pair("zone", "a")));
  EXPECT_THAT(set.Find("zone"), Pointee(std::string("a")));
  EXPECT_THAT(set.Find("b"), Pointee(std::string()));
  EXPECT_THAT(set.Find("c"), IsNull());
  EXPECT_THAT(LabelSet().Find("app"), IsNull());
  EXPECT_EQ(set.ToMap(), labels);
  EXPECT_EQ(set, LabelSet(labels));
  EXPECT_NE(set, LabelSet());
  for (const char* const text :
       {R"({"matchLabels": {"app": "x"}})", R"({"matchLabels": {"app": "y"}})",
        R"({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["b"]}]})",
        R"({"matchExpressions": [{"key": "c", "operator": "Exists"}]})"}) {
    const LabelSelector selector = *ParseLabelSelector(Json::parse(text), "");
    EXPECT_EQ(Matches(selector, set), selector.Matches(labels)) << text;
  }
}

TEST(LabelSetTest, EqualLabelsOfDifferentSetsAreInMemoryOnce) {
  LabelSet::Pool pool;
  const LabelSet a = LabelSet(Labels{{"app", "x"}, {"index", "0"}}).SharedIn(pool);
  const LabelSet b = LabelSet(Labels{{"app", "x"}, {"index", "1"}}).SharedIn(pool);
  EXPECT_EQ(a.Find("app"), b.Find("app"));
  EXPECT_NE(a.Find("index"), b.Find("index"));
  EXPECT_EQ(pool.size(), 3);
}

}  // namespace
}  // namespace railhead::op
