// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/stored_profile.h"

#include <gtest/gtest.h>

#include "kube/json.h"

namespace railhead::op {
namespace {

using kube::Json;

Json Profile() {
  return Json::parse(R"({"apiVersion": "railhead.io/v1alpha1", "kind": "RailProfile",
    "metadata": {"name": "p", "generation": 3, "uid": "u", "resourceVersion": "7"},
    "spec": {"fabric": "RoCE", "namespaceSelector": {"matchLabels": {"team": "ml"}}}})");
}

TEST(StoredProfileTest, HoldsTheProfile) {
  const StoredProfile stored = ReadStoredProfile(Profile());
  EXPECT_EQ(stored.name, "p");
  EXPECT_EQ(stored.generation, 3);
  EXPECT_EQ(stored.refusal, "");
  ASSERT_TRUE(stored.profile.has_value());
  EXPECT_EQ(stored.profile->fabric, Fabric::kRoce);
  EXPECT_EQ(stored.profile->generation, 3);
}

TEST(StoredProfileTest, SaysWhichFieldIsWrongAndOfWhichGeneration) {
  Json object = Profile();
  object["spec"]["fabric"] = "Token Ring";
  const StoredProfile stored = ReadStoredProfile(object);
  EXPECT_EQ(stored.generation, 3);
  EXPECT_FALSE(stored.profile.has_value());
  EXPECT_EQ(stored.refusal.rfind("spec.fabric: ", 0), 0U) << stored.refusal;
}

TEST(StoredProfileTest, TakesAnyObject) {
  for (const char* text : {"null", "[]", "{}", R"({"metadata": {"generation": "x"}})",
                           R"({"metadata": 1, "spec": null})"}) {
    const StoredProfile stored = ReadStoredProfile(Json::parse(text));
    EXPECT_FALSE(stored.profile.has_value()) << text;
    EXPECT_NE(stored.refusal, "") << text;
    EXPECT_EQ(stored.generation, 0) << text;
  }
}

}  // namespace
}  // namespace railhead::op
