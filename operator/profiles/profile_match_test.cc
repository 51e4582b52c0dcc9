// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/profile_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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
    EXPECT_TRUE(choice.conflicting.empty());
    return choice.profile->name;
  }
  return choice.conflicting.empty()
             ? "none"
             : absl::StrCat(absl::StrJoin(choice.conflicting, " and "), " at ", choice.priority);
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
    EXPECT_THAT(Chosen(profiles, {{"team", "ml"}}, {{"app", "a"}}), StartsWith("a and b at 5"));
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
            "spec.priority: RailProfile b has the same priority 5 and can match the same pods, for "
            "example in namespace train; neither is applied to these pods, unless a profile with a "
            "higher priority matches: give one of them a higher priority");
  EXPECT_THAT(conflicts.at("b"), StartsWith("spec.priority: RailProfile a has the same"));
  // Without a namespace in which both match there is no such pod.
  EXPECT_TRUE(FindConflicts(profiles, {{"site", {{"team", "web"}}}}).empty());
  EXPECT_TRUE(
      FindConflicts(profiles, {{"kube-system",
                                {{"team", "ml"}, {"kubernetes.io/metadata.name", "kube-system"}}}})
          .empty());
}

TEST(FindConflictsTest, AHigherPrioritySettlesItForThePodsThatItMatches) {
  std::vector<RailProfile> profiles = {Profile("a", 5, {}, {{"app", "x"}}),
                                       Profile("b", 5, {}, {{"app", "x"}, {"tier", "t"}}),
                                       Profile("c", 6, {{"team", "ml"}})};
  const std::map<std::string, Labels> one = {{"train", {{"team", "ml"}}}};
  std::map<std::string, Labels> two = one;
  two["site"] = {};
  EXPECT_TRUE(FindConflicts(profiles, one).empty());
  EXPECT_THAT(FindConflicts(profiles, two).at("a"), HasSubstr("for example in namespace site"));
  profiles[2].pods.labels = {{"app", "x"}, {"tier", "t"}};
  EXPECT_TRUE(FindConflicts(profiles, one).empty());
  profiles[2].pods.labels = {{"app", "x"}, {"zone", "z"}};
  EXPECT_EQ(FindConflicts(profiles, one).size(), 2U);
  profiles[2].pods.labels = {};
  profiles[2].priority = 4;
  EXPECT_EQ(FindConflicts(profiles, one).size(), 2U);
}

TEST(FindConflictsTest, ManyOthersAreCounted) {
  std::vector<RailProfile> profiles;
  for (int i = 0; i < 1000; ++i) profiles.push_back(Profile(absl::StrCat("p", 1000 + i), 0, {}));
  const auto conflicts = FindConflicts(profiles, {{"train", {}}});
  EXPECT_EQ(conflicts.size(), 1000U);
  EXPECT_THAT(conflicts.at("p1000"), HasSubstr("p1008 and 991 more has the same"));
}

// A profile is in conflict exactly if, in a cluster of it and two others, some pod would get it if
// another one were not there, and gets none. (Of more others, two could settle it together.)
TEST(FindConflictsTest, SaysWhatAdmissionWouldDo) {
  std::mt19937 random(1);
  const auto chance = [&random](unsigned n) { return random() % n; };
  const auto value = [&] { return std::string(chance(2) == 0 ? "a" : "b"); };
  const auto labels = [&] {
    Labels some;
    for (const char* key : {"k", "l"}) {
      if (chance(2) == 0) some[key] = value();
    }
    return some;
  };
  const auto profile = [&](const std::string& name) {
    RailProfile made = Profile(name, static_cast<int64_t>(chance(2)), labels(), labels());
    if (chance(2) == 0) {
      using enum LabelSelector::Operator;
      const LabelSelector::Operator how =
          std::vector{kIn, kNotIn, kExists, kDoesNotExist}.at(chance(4));
      const bool listed = how == kIn || how == kNotIn;
      made.pods.labels.clear();
      made.pods.expressions = {{chance(2) == 0 ? "k" : "l", how, {}}};
      for (unsigned i = 0; listed && i <= chance(2); ++i) {
        made.pods.expressions[0].values.insert(value());
      }
    }
    return made;
  };
  const std::vector<std::string> values = {"", "a", "b", "other"};  // "": without the label
  int found = 0;
  int settled = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::vector<RailProfile> profiles = {profile("x"), profile("y"), profile("z")};
    std::map<std::string, Labels> namespaces;
    for (unsigned i = 0; i < chance(3) + 1; ++i) namespaces[absl::StrCat("n", i)] = labels();
    std::set<std::string> wanted;
    bool lower = false;  // two contradict each other, and another one has a higher priority
    for (const auto& [name, space] : namespaces) {
      for (const std::string& k : values) {
        for (const std::string& l : values) {
          Labels pod;
          if (!k.empty()) pod["k"] = k;
          if (!l.empty()) pod["l"] = l;
          const std::vector<std::string> conflict = ChooseProfile(profiles, space, pod).conflicting;
          wanted.insert(conflict.begin(), conflict.end());
          int matching = 0;
          for (const RailProfile& one : profiles) {
            matching += one.priority == 0 && one.namespaces.Matches(space) && one.pods.Matches(pod);
          }
          lower = lower || (matching == 2 && conflict.empty());
        }
      }
    }
    std::set<std::string> told;
    for (const auto& [name, message] : FindConflicts(profiles, namespaces)) told.insert(name);
    EXPECT_EQ(told, wanted) << round;
    found += wanted.empty() ? 0 : 1;
    settled += wanted.empty() && lower ? 1 : 0;
  }
  EXPECT_GT(found, 200);
  EXPECT_LT(found, 3800);
  EXPECT_GT(settled, 20);
}

}  // namespace
}  // namespace railhead::op
