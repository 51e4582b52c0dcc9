// SPDX-License-Identifier: Apache-2.0
#include "operator/profile_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace railhead::op {
namespace {

using ::testing::StartsWith;

RailProfile Profile(const std::string& name, int64_t priority, const Labels& namespaces,
                    const Labels& pods = {}) {
  RailProfile profile;
  profile.name = name;
  profile.priority = priority;
  profile.namespaces.labels = namespaces;
  profile.pods.labels = pods;
  return profile;
}

std::string Chosen(const std::vector<RailProfile>& profiles, const Labels& namespaces,
                   const Labels& pods) {
  const ProfileChoice choice = ChooseProfile(profiles, namespaces, pods);
  if (choice.profile != nullptr) {
    EXPECT_EQ(choice.conflict, "");
    return choice.profile->name;
  }
  return choice.conflict.empty() ? "none" : choice.conflict;
}

// In every order of the list, as a cluster has none.
TEST(ChooseProfileTest, TheHighestPriorityOfThoseThatMatch) {
  std::vector<RailProfile> profiles = {
      Profile("all", -10, {{"team", "ml"}}), Profile("mine", 0, {{"team", "ml"}}, {{"app", "a"}}),
      Profile("other", 100, {{"team", "web"}}), Profile("b", 7, {{"team", "ml"}}, {{"app", "b"}})};
  std::sort(profiles.begin(), profiles.end(),
            [](const RailProfile& a, const RailProfile& b) { return a.name < b.name; });
  int orders = 0;
  do {
    EXPECT_EQ(Chosen(profiles, {{"team", "ml"}}, {{"app", "a"}}), "mine");
    EXPECT_EQ(Chosen(profiles, {{"team", "ml"}}, {{"app", "b"}}), "b");
    EXPECT_EQ(Chosen(profiles, {{"team", "ml"}}, {}), "all");
    EXPECT_EQ(Chosen(profiles, {{"team", "web"}}, {{"app", "a"}}), "other");
    EXPECT_EQ(Chosen(profiles, {}, {{"app", "a"}}), "none");
    ++orders;
  } while (std::next_permutation(
      profiles.begin(), profiles.end(),
      [](const RailProfile& a, const RailProfile& b) { return a.name < b.name; }));
  EXPECT_EQ(orders, 24);
}

TEST(ChooseProfileTest, EqualPrioritiesContradict) {
  std::vector<RailProfile> profiles = {Profile("b", 5, {{"team", "ml"}}),
                                       Profile("low", 4, {{"team", "ml"}}),
                                       Profile("a", 5, {{"team", "ml"}}, {{"app", "a"}})};
  for (int order = 0; order < 2; ++order) {
    EXPECT_THAT(Chosen(profiles, {{"team", "ml"}}, {{"app", "a"}}),
                StartsWith("spec.priority: RailProfiles a and b match with the same priority 5"));
    EXPECT_EQ(Chosen(profiles, {{"team", "ml"}}, {}), "b");
    std::reverse(profiles.begin(), profiles.end());
  }
  // A higher one settles it.
  profiles.push_back(Profile("c", 6, {{"team", "ml"}}));
  EXPECT_EQ(Chosen(profiles, {{"team", "ml"}}, {{"app", "a"}}), "c");
}

TEST(ChooseProfileTest, NeverInKubeSystem) {
  const std::vector<RailProfile> profiles = {Profile("a", 0, {{"team", "ml"}})};
  EXPECT_EQ(Chosen(profiles, {{"team", "ml"}, {"kubernetes.io/metadata.name", "x"}}, {}), "a");
  EXPECT_EQ(Chosen(profiles, {{"team", "ml"}, {"kubernetes.io/metadata.name", "kube-system"}}, {}),
            "none");
}

}  // namespace
}  // namespace railhead::op
