// SPDX-License-Identifier: Apache-2.0
#include "kube/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>

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
      Options(),
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
       [this](const absl::Status&) { ++ends_; }}};
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

}  // namespace
}  // namespace railhead::kube
