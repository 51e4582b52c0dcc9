// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/turns.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::op::gangs {
namespace {

std::vector<std::string> Names(int count) {
  std::vector<std::string> gangs;
  for (int i = 0; i < count; ++i) gangs.push_back(absl::StrCat("g", i));
  return gangs;
}

// Who has had a turn in a round.
std::vector<std::string> OneRound(Turns& turns, const std::vector<std::string>& gangs) {
  std::vector<std::string> told;
  for (const std::string& gang : gangs) {
    if (turns.Take(gang)) told.push_back(gang);
  }
  return told;
}

const absl::Time kNoon = absl::UnixEpoch();

TEST(Turns, AFewAreToldAtOnceAndThenEachAfterAMinute) {
  Turns turns;
  EXPECT_EQ(OneRound(turns, Names(2)), Names(2));
  EXPECT_EQ(turns.EndRound(Names(2), kNoon), kNoon + Turns::kAtSoonest);
  EXPECT_TRUE(OneRound(turns, Names(2)).empty());
  EXPECT_EQ(turns.EndRound(Names(2), kNoon + Turns::kAtSoonest),
            kNoon + Turns::kAtSoonest + Turns::kNextRound);
  EXPECT_EQ(OneRound(turns, Names(2)), Names(2));
}

TEST(Turns, OfManyEachIsToldOnceBeforeAnyIsToldAgain) {
  Turns turns;
  const std::vector<std::string> gangs = Names(500);
  absl::Time now = kNoon;
  std::map<std::string, std::vector<absl::Time>> told;
  int rounds = 0;
  while (told.size() < gangs.size()) {
    const std::vector<std::string> in_round = OneRound(turns, gangs);
    EXPECT_LE(in_round.size(), Turns::kInARound);
    for (const std::string& gang : in_round) told[gang].push_back(now);
    ASSERT_LE(++rounds, 500 / static_cast<int>(Turns::kInARound));
    const absl::Time next = turns.EndRound(gangs, now);
    if (told.size() < gangs.size()) {
      EXPECT_EQ(next, now + Turns::kNextRound);
    }
    now = next;
  }
  for (const auto& [gang, times] : told) EXPECT_EQ(times.size(), 1U) << gang;
  // From then on less often than one in a second, and each in turn.
  const absl::Time begin = now;
  while (now < begin + absl::Seconds(1500)) {
    for (const std::string& gang : OneRound(turns, gangs)) told[gang].push_back(now);
    now = turns.EndRound(gangs, now);
  }
  size_t all = 0;
  for (const auto& [gang, times] : told) {
    EXPECT_GE(times.size(), 3U) << gang;
    all += times.size();
    for (size_t i = 1; i < times.size(); ++i) {
      EXPECT_GE(times[i] - times[i - 1], 500 * Turns::kForEach);
    }
  }
  EXPECT_LE(all, 500U + 1500U + 500U);
}

TEST(Turns, AFullQueueKeepsNoNewGangWaitingForLong) {
  Turns turns;
  std::vector<std::string> gangs = Names(300);
  absl::Time now = kNoon;
  for (int round = 0; round < 100; ++round) {
    OneRound(turns, gangs);
    now = turns.EndRound(gangs, now);
  }
  gangs.insert(gangs.begin() + 150, "new");
  std::vector<std::string> told;
  for (int round = 0; round < 2 && told.empty(); ++round) {
    for (const std::string& gang : OneRound(turns, gangs)) {
      if (gang == "new") told.push_back(gang);
    }
    now = turns.EndRound(gangs, now);
  }
  EXPECT_EQ(told.size(), 1U);
}

TEST(Turns, WhoDoesNotTakeItsTurnKeepsNobodyFromTheirs) {
  Turns turns;
  const std::vector<std::string> gangs = Names(20);
  absl::Time now = kNoon;
  std::vector<std::string> told;
  for (int round = 0; round < 12; ++round) {
    // The first ten are told otherwise.
    for (int i = 10; i < 20; ++i) {
      if (turns.Take(gangs[static_cast<size_t>(i)])) {
        told.push_back(gangs[static_cast<size_t>(i)]);
      }
    }
    now = turns.EndRound(gangs, now);
  }
  EXPECT_GE(told.size(), 10U);
}

TEST(Turns, GangsThatComeAndGoAtRandomAreAllTold) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Turns turns;
    std::map<std::string, int> rounds_in_vain;  // of each that waits and was never told
    std::map<std::string, int> queue;           // name, and how long it will still wait
    int serial = 0;
    absl::Time now = kNoon;
    for (int round = 0; round < 400; ++round) {
      if (random() % 2 == 0) {
        const std::string name = absl::StrCat("g", ++serial);
        queue[name] = 1 + static_cast<int>(random() % 200);
        rounds_in_vain[name] = 0;
      }
      std::vector<std::string> gangs;
      for (auto& [name, left] : queue) gangs.push_back(name);
      for (const std::string& gang : OneRound(turns, gangs)) rounds_in_vain.erase(gang);
      for (auto& [gang, rounds] : rounds_in_vain) ASSERT_LE(++rounds, 3) << gang << " " << seed;
      turns.EndRound(gangs, now);
      now += Turns::kNextRound;
      for (auto& [name, left] : queue) {
        if (--left == 0) rounds_in_vain.erase(name);
      }
      std::erase_if(queue, [](const auto& entry) { return entry.second == 0; });
    }
  }
}

}  // namespace
}  // namespace railhead::op::gangs
