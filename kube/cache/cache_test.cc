// SPDX-License-Identifier: Apache-2.0
#include "kube/cache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsNull;
using ::testing::Pointee;

Json Pod(const std::string& name, const std::string& node, int heartbeat = 0) {
  return {{"metadata", {{"namespace", "team"}, {"name", name}}},
          {"spec", {{"nodeName", node}}},
          {"heartbeat", heartbeat}};
}

class CacheTest : public ::testing::Test {
 protected:
  using Nodes = Cache<std::string>;

  std::vector<std::string> TakeLog() { return std::exchange(log_, {}); }

  std::vector<std::string> log_;
  // Keeps the node's name; of pods on "nowhere", nothing.
  Nodes cache_{
      [](const Json& pod) -> std::optional<std::string> {
        std::string node = StringAt(pod, {"spec", "nodeName"});
        if (node == "nowhere") return std::nullopt;
        return node;
      },
      [this](const std::string& key, const Nodes::Value& before, const Nodes::Value& after) {
        EXPECT_EQ(cache_.Get(key), after);
        log_.push_back(
            absl::StrCat(key, ": ", before ? *before : "-", " > ", after ? *after : "-"));
      }};
};

TEST_F(CacheTest, TellsOfWhatIsNewChangedAndGone) {
  cache_.Put(Pod("a", "n1"));
  cache_.Put(Pod("a", "n2"));
  EXPECT_THAT(cache_.Get("team/a"), Pointee(std::string("n2")));
  cache_.Remove(Pod("a", "n2"));
  cache_.Remove(Pod("a", "n2"));
  EXPECT_THAT(cache_.Get("team/a"), IsNull());
  EXPECT_THAT(TakeLog(), ElementsAre("team/a: - > n1", "team/a: n1 > n2", "team/a: n2 > -"));
  EXPECT_EQ(cache_.generation(), 3U);
}

TEST_F(CacheTest, AChangeThatIsNotKeptIsNone) {
  cache_.Put(Pod("a", "n1", 1));
  cache_.Put(Pod("a", "n1", 2));
  EXPECT_THAT(TakeLog(), ElementsAre("team/a: - > n1"));
  EXPECT_EQ(cache_.generation(), 1U);
}

TEST_F(CacheTest, WhatIsOfNoInterestIsNotThere) {
  cache_.Put(Pod("a", "nowhere"));
  EXPECT_EQ(cache_.size(), 0U);
  cache_.Put(Pod("a", "n1"));
  cache_.Put(Pod("a", "nowhere"));
  EXPECT_EQ(cache_.size(), 0U);
  EXPECT_THAT(TakeLog(), ElementsAre("team/a: - > n1", "team/a: n1 > -"));
}

TEST_F(CacheTest, AListRemovesWhatItDoesNotHave) {
  for (const char* name : {"a", "b", "c"}) cache_.Put(Pod(name, "n1"));
  TakeLog();
  cache_.BeginList();
  cache_.Put(Pod("b", "n1"));
  cache_.BeginList();  // the first one broke off
  cache_.Put(Pod("c", "n1"));
  cache_.Put(Pod("d", "n1"));
  EXPECT_EQ(cache_.size(), 4U);
  cache_.EndList();
  EXPECT_THAT(TakeLog(), ElementsAre("team/d: - > n1", "team/a: n1 > -", "team/b: n1 > -"));
  cache_.Put(Pod("e", "n1"));  // by the watch
  cache_.BeginList();
  cache_.Put(Pod("e", "n1"));
  cache_.EndList();
  std::vector<std::string> keys;
  EXPECT_EQ(
      cache_.ForEach([&keys](const std::string& key, const Nodes::Value&) { keys.push_back(key); }),
      cache_.generation());
  EXPECT_THAT(keys, ElementsAre("team/e"));
}

TEST(KeyOfTest, NamesAnObject) {
  EXPECT_EQ(KeyOf(Pod("a", "")), "team/a");
  EXPECT_EQ(KeyOf({{"metadata", {{"name", "n1"}}}}), "n1");
}

}  // namespace
}  // namespace railhead::kube
