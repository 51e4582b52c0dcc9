// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/profile_status.h"

#include <gtest/gtest.h>

#include <string>

namespace railhead::op {
namespace {

using kube::Json;

const absl::Time kNow =
    absl::FromCivil(absl::CivilSecond(2026, 11, 22, 12, 0, 0), absl::UTCTimeZone());

StoredProfile Stored(const Json& status) {
  return ReadStoredProfile(
      {{"metadata", {{"name", "p"}, {"resourceVersion", "7"}, {"generation", 3}}},
       {"status", status}});
}

// The conditions of an applied object, by type.
Json ConditionsOf(const Json& object) {
  Json conditions = Json::object();
  for (const Json& condition : object["status"]["conditions"]) {
    conditions[condition["type"].get<std::string>()] = condition;
  }
  return conditions;
}

TEST(ProfileStatusTest, TellsThatAProfileIsUsed) {
  const auto object = StatusToApply(Stored(nullptr), {3, "", ""}, kNow);
  ASSERT_TRUE(object.has_value());
  EXPECT_EQ((*object)["apiVersion"], "railhead.io/v1alpha1");
  EXPECT_EQ((*object)["kind"], "RailProfile");
  EXPECT_EQ((*object)["metadata"], Json({{"name", "p"}, {"resourceVersion", "7"}}));
  EXPECT_EQ((*object)["status"]["observedGeneration"], 3);
  const Json conditions = ConditionsOf(*object);
  EXPECT_EQ(conditions["Accepted"]["status"], "True");
  EXPECT_EQ(conditions["Accepted"]["reason"], "Valid");
  EXPECT_EQ(conditions["Accepted"]["observedGeneration"], 3);
  EXPECT_EQ(conditions["Accepted"]["lastTransitionTime"], "2026-11-22T12:00:00Z");
  EXPECT_EQ(conditions["Conflicts"]["status"], "False");
}

TEST(ProfileStatusTest, TellsWhyNot) {
  const auto object = StatusToApply(Stored(nullptr), {3, "spec.fabric: is missing", ""}, kNow);
  ASSERT_TRUE(object.has_value());
  const Json conditions = ConditionsOf(*object);
  EXPECT_EQ(conditions["Accepted"]["status"], "False");
  EXPECT_EQ(conditions["Accepted"]["reason"], "Invalid");
  EXPECT_EQ(conditions["Accepted"]["message"], "spec.fabric: is missing");
}

TEST(ProfileStatusTest, SaysNothingTwice) {
  const ProfileReport report = {3, "", "spec.priority: RailProfile q has the same"};
  const auto first = StatusToApply(Stored(nullptr), report, kNow);
  ASSERT_TRUE(first.has_value());
  const StoredProfile told = Stored((*first)["status"]);
  EXPECT_FALSE(StatusToApply(told, report, kNow + absl::Hours(1)).has_value());
  // What other conditions there are is somebody else's.
  Json more = (*first)["status"];
  more["conditions"].push_back({{"type", "Reviewed"}, {"status", "True"}});
  EXPECT_FALSE(StatusToApply(Stored(more), report, kNow + absl::Hours(1)).has_value());
}

TEST(ProfileStatusTest, WhatStaysKeepsItsTimeAndWhatChangesGetsANewOne) {
  const auto first = StatusToApply(Stored(nullptr), {2, "", ""}, kNow);
  ASSERT_TRUE(first.has_value());
  const auto second =
      StatusToApply(Stored((*first)["status"]), {3, "", "spec.priority: "}, kNow + absl::Hours(1));
  ASSERT_TRUE(second.has_value());
  const Json conditions = ConditionsOf(*second);
  EXPECT_EQ(conditions["Accepted"]["observedGeneration"], 3);
  EXPECT_EQ(conditions["Accepted"]["lastTransitionTime"], "2026-11-22T12:00:00Z");
  EXPECT_EQ(conditions["Conflicts"]["reason"], "SamePriority");
  EXPECT_EQ(conditions["Conflicts"]["lastTransitionTime"], "2026-11-22T13:00:00Z");
}

}  // namespace
}  // namespace railhead::op
