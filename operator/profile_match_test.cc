// SPDX-License-Identifier: Apache-2.0
#include "operator/profile_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::op {
namespace {

using ::testing::HasSubstr;
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

TEST(FindConflictsTest, NamesTheOtherTheNamespaceAndTheWayOut) {
  const std::vector<RailProfile> profiles = {
      Profile("a", 5, {{"team", "ml"}}), Profile("b", 5, {{"team", "ml"}}, {{"app", "x"}}),
      Profile("c", 5, {{"team", "web"}}), Profile("low", 4, {{"team", "ml"}})};
  const std::map<std::string, std::string> conflicts =
      FindConflicts(profiles, {{"train", {{"team", "ml"}}}, {"site", {{"team", "web"}}}});
  ASSERT_EQ(conflicts.size(), 2U);
  EXPECT_EQ(conflicts.at("a"),
            "spec.priority: RailProfile b has the same priority 5 and can match the same pods, in "
            "namespace train for one; to them neither is applied: give one of them a higher one");
  EXPECT_THAT(conflicts.at("b"), StartsWith("spec.priority: RailProfile a has the same"));
  // Without a namespace in which both match there is no such pod.
  EXPECT_TRUE(FindConflicts(profiles, {{"site", {{"team", "web"}}}}).empty());
  EXPECT_TRUE(
      FindConflicts(profiles, {{"kube-system",
                                {{"team", "ml"}, {"kubernetes.io/metadata.name", "kube-system"}}}})
          .empty());
}

TEST(FindConflictsTest, ManyOthersAreCounted) {
  std::vector<RailProfile> profiles;
  for (int i = 0; i < 1000; ++i) profiles.push_back(Profile(absl::StrCat("p", 1000 + i), 0, {}));
  const auto conflicts = FindConflicts(profiles, {{"train", {}}});
  EXPECT_EQ(conflicts.size(), 1000U);
  EXPECT_THAT(conflicts.at("p1000"), HasSubstr("p1008 and 991 more has the same"));
}

// A profile is in conflict exactly if, in a cluster of it and one other, some pod gets neither.
TEST(FindConflictsTest, SaysWhatAdmissionWouldDo) {
  std::mt19937 random(1);
  const auto chance = [&random](unsigned n) { return random() % n; };
  const auto labels = [&] {
    Labels some;
    for (const char* key : {"k", "l"}) {
      if (chance(2) == 0) some[key] = chance(2) == 0 ? "a" : "b";
    }
    return some;
  };
  const std::vector<std::string> values = {"", "a", "b", "other"};  // "": without the label
  int found = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::vector<RailProfile> profiles = {
        Profile("x", static_cast<int64_t>(chance(2)), labels(), labels()),
        Profile("y", static_cast<int64_t>(chance(2)), labels(), labels())};
    std::map<std::string, Labels> namespaces;
    for (unsigned i = 0; i < chance(3) + 1; ++i) namespaces[absl::StrCat("n", i)] = labels();
    bool wanted = false;
    for (const auto& [name, space] : namespaces) {
      for (const std::string& k : values) {
        for (const std::string& l : values) {
          Labels pod;
          if (!k.empty()) pod["k"] = k;
          if (!l.empty()) pod["l"] = l;
          wanted = wanted || !ChooseProfile(profiles, space, pod).conflict.empty();
        }
      }
    }
    EXPECT_EQ(FindConflicts(profiles, namespaces).size(), wanted ? 2U : 0U);
    found += wanted ? 1 : 0;
  }
  EXPECT_GT(found, 100);
  EXPECT_LT(found, 1900);
}

}  // namespace
}  // namespace railhead::op
