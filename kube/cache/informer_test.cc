// SPDX-License-Identifier: Apache-2.0
#include "kube/cache/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "kube/testing/fake_api.h"
#include "kube/testing/soon.h"

namespace railhead::kube {
namespace {

using testing::Soon;

const ObjectRef kMaps = {"v1", "configmaps", "team", ""};

ObjectRef Map(const std::string& name) { return {"v1", "configmaps", "team", name}; }

class InformerTest : public ::testing::Test {
 protected:
  static ReflectorOptions Options() {
    ReflectorOptions options;
    options.collection = kMaps;
    options.backoff = {absl::Milliseconds(1), absl::Milliseconds(4)};
    return options;
  }
  void Put(const std::string& name, int value) {
    api_.Put(Map(name), {{"metadata", {{"namespace", "team"}, {"name", name}}}, {"value", value}});
  }

  testing::FakeApi api_;
  std::atomic<int> changes_{0};
  std::atomic<int> synced_{0};
  std::atomic<size_t> there_when_synced_{0};
  std::atomic<bool> synced_was_told_{false};
  std::atomic<int> ends_{0};
  Informer<int> informer_{
      {Options()},
      &api_,
      [](const Json& object) { return std::optional<int>(object["value"].get<int>()); },
      {[this](const std::string&, const Cache<int>::Value&, const Cache<int>::Value&) {
         ++changes_;
       },
       [this] {
         ++synced_;
         there_when_synced_ = informer_.cache().size();
         synced_was_told_ = informer_.Synced();
       },
       [this](const std::string&, const absl::Status&) { ++ends_; }}};
};

TEST_F(InformerTest, IsSyncedOnceAllIsThereAndFollowsFromThereOn) {
  for (int i = 0; i < 5; ++i) Put("m" + std::to_string(i), i);  // a page each
  const InformerState before = informer_.State();
  EXPECT_EQ(before.resource, "configmaps");
  EXPECT_FALSE(before.synced);
  EXPECT_EQ(before.age, absl::InfiniteDuration());
  informer_.Start();
  ASSERT_TRUE(Soon([this] { return informer_.Synced() && synced_ == 1; }));
  EXPECT_EQ(there_when_synced_, 5U);
  EXPECT_TRUE(synced_was_told_);
  EXPECT_EQ(changes_, 5);
  Put("m5", 5);
  ASSERT_TRUE(Soon([this] { return informer_.cache().size() == 6; }));
  EXPECT_LT(informer_.State().age, absl::InfiniteDuration());
  EXPECT_EQ(informer_.State().objects, 6U);
}

TEST_F(InformerTest, KeepsWhatItHasWhileTheServerIsAwayAndIsSyncedOnlyOnce) {
  Put("a", 1);
  api_.SetOutage(absl::UnavailableError("down"));
  informer_.Start();
  ASSERT_TRUE(Soon([this] { return ends_ >= 2; }));
  EXPECT_FALSE(informer_.Synced());
  api_.SetOutage(absl::OkStatus());
  ASSERT_TRUE(Soon([this] { return informer_.Synced(); }));
  const int ends = ends_;
  api_.SetOutage(absl::UnavailableError("down"));
  ASSERT_TRUE(Soon([&] { return ends_ >= ends + 2; }));
  EXPECT_TRUE(informer_.Synced());
  EXPECT_EQ(informer_.cache().size(), 1U);
  api_.Put(Map("b"), {{"metadata", {{"namespace", "team"}, {"name", "b"}}}, {"value", 2}});
  api_.Compact();  // so that it must list anew
  api_.SetOutage(absl::OkStatus());
  ASSERT_TRUE(Soon([this] { return informer_.cache().size() == 2; }));
  EXPECT_EQ(synced_, 1);
}

// Another informer, of two namespaces, beside the one of the fixture.
TEST_F(InformerTest, FollowsTheCollectionsOfTwoNamespacesInOneCache) {
  const auto put = [this](const std::string& space, const std::string& name, int value) {
    api_.Put({"v1", "configmaps", space, name},
             {{"metadata", {{"namespace", space}, {"name", name}}}, {"value", value}});
  };
  std::vector<ReflectorOptions> collections = {Options(), Options()};
  collections[1].collection.space = "other";
  std::atomic<int> synced{0};
  Informer<int> informer(
      collections, &api_,
      [](const Json& object) { return std::optional<int>(object["value"].get<int>()); },
      {[](const std::string&, const Cache<int>::Value&, const Cache<int>::Value&) {},
       [&synced] { ++synced; }, [](const std::string&, const absl::Status&) {}});
  put("team", "a", 1);
  put("other", "a", 2);
  put("third", "a", 3);
  informer.Start();
  ASSERT_TRUE(Soon([&] { return informer.Synced() && synced == 1; }));
  EXPECT_EQ(informer.cache().size(), 2U);
  EXPECT_EQ(*informer.cache().Get("other/a"), 2);
  EXPECT_LT(informer.State().age, absl::InfiniteDuration());
  // A new list of one namespace takes nothing away from the other.
  api_.SetOutage(absl::UnavailableError("down"));
  api_.EndWatches();
  api_.Remove({"v1", "configmaps", "team", "a"});
  put("other", "b", 4);
  api_.Compact();
  api_.SetOutage(absl::OkStatus());
  ASSERT_TRUE(Soon([&] {
    return informer.cache().Get("team/a") == nullptr && informer.cache().Get("other/b") != nullptr;
  }));
  EXPECT_EQ(informer.cache().size(), 2U);
  EXPECT_EQ(synced, 1);
}

}  // namespace
}  // namespace railhead::kube
