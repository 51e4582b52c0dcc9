// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/transfer_stillness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace railhead::recorder {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr int kAny = TransferStillness::kAny;

absl::Time At(int second) { return absl::FromUnixSeconds(1700000000) + absl::Seconds(second); }

using Peers = std::map<int, TransferStillness::Peer>;
using Pairs = std::vector<std::pair<int, int>>;

TransferStillness::Peer UnderWay(uint64_t progress = 0) { return {progress, true, true}; }
TransferStillness::Peer Unfinished(uint64_t progress = 0) { return {progress, false, true}; }

// The answers of ranks in whose transfers nothing has moved from second 0 to `second`.
std::vector<Seen> Answers(const std::vector<Peers>& ranks, int second = 60, uint32_t query = 1) {
  std::vector<Seen> seen;
  for (const Peers& peers : ranks) {
    TransferStillness still(kTimeout);
    for (int at = 0; at <= second; at += 5) still.Look(At(at), peers);
    Seen& one = seen.emplace_back();
    one.how = Seen::How::kAnswered;
    one.position.transfers = still.At(At(second), static_cast<int>(seen.size()) - 1, query);
  }
  return seen;
}
Pairs Stuck(const std::vector<Peers>& ranks, int second = 60) {
  return StuckPairs(Answers(ranks, second));
}

TEST(TransferStillnessTest, TimeCountsFromTheLastProgress) {
  TransferStillness still(kTimeout);
  for (int second = 0; second < 100; second += 5) {
    still.Look(At(second), {{1, UnderWay(second < 20 ? second : 20)}, {2, Unfinished()}});
  }
  EXPECT_THAT(still.UnderWay(At(79), kTimeout), IsEmpty());
  EXPECT_THAT(still.UnderWay(At(80), kTimeout), ElementsAre(1));
  EXPECT_THAT(still.Unfinished(At(60), kTimeout), ElementsAre(2));
  EXPECT_EQ(still.At(At(100), 0, 1).still, absl::Seconds(100));
  EXPECT_EQ(still.At(At(100), 0, 1).under_way.ranks, std::vector<int>{1});
}

// A message that is sent after a transfer has waited for long is not late at once.
TEST(TransferStillnessTest, AMessageIsUnderWaySinceItIs) {
  TransferStillness still(kTimeout);
  for (int second = 0; second < 100; second += 5) still.Look(At(second), {{1, Unfinished()}});
  for (int second = 100; second <= 160; second += 5) still.Look(At(second), {{1, UnderWay()}});
  EXPECT_THAT(still.UnderWay(At(159), kTimeout), IsEmpty());
  EXPECT_THAT(still.UnderWay(At(160), kTimeout), ElementsAre(1));
}

TEST(TransferStillnessTest, AProcessThatWasStoppedHasSeenNothing) {
  TransferStillness still(kTimeout);
  for (int second = 0; second < 50; second += 5) still.Look(At(second), {{1, UnderWay()}});
  still.Look(At(500), {{1, UnderWay()}});
  EXPECT_THAT(still.UnderWay(At(500), absl::Seconds(1)), IsEmpty());
}

TEST(StuckPairsTest, BothHavePostedAndNothingMoves) {
  EXPECT_EQ(Stuck({{{1, UnderWay()}}, {{0, UnderWay()}}, {}}), (Pairs{{0, 1}}));
  EXPECT_EQ(Stuck({{{1, UnderWay()}}, {{0, Unfinished()}}, {}}), (Pairs{{0, 1}}));
  EXPECT_EQ(Stuck({{}, {{2, Unfinished()}}, {{1, UnderWay()}}}), (Pairs{{1, 2}}));
  EXPECT_THAT(Stuck({{{1, UnderWay()}}, {{0, UnderWay()}}, {}}, 55), IsEmpty());
}

TEST(StuckPairsTest, AReceiveFromAnyRankIsForAllThatSend) {
  EXPECT_EQ(Stuck({{{2, UnderWay()}}, {}, {{kAny, Unfinished()}}}), (Pairs{{0, 2}}));
  EXPECT_THAT(Stuck({{{1, UnderWay()}}, {}, {{kAny, Unfinished()}}}), IsEmpty());
  EXPECT_THAT(Stuck({{{kAny, Unfinished()}}, {{kAny, Unfinished()}}}), IsEmpty());
}

TEST(StuckPairsTest, WhatOnlyOneRankHasPostedWaits) {
  EXPECT_THAT(Stuck({{{1, UnderWay()}}, {}}), IsEmpty());
  EXPECT_THAT(Stuck({{{1, UnderWay()}}, {{2, UnderWay()}}, {}}), IsEmpty());
  // Both were told of the other's message, and neither has posted the receive.
  EXPECT_THAT(Stuck({{{1, Unfinished()}}, {{0, Unfinished()}}}), IsEmpty());
  // Transfers with oneself, and what no rank can say.
  EXPECT_THAT(Stuck({{{0, UnderWay()}}, {}}), IsEmpty());
  std::vector<Seen> seen = Answers({{{1, UnderWay()}}, {{0, UnderWay()}}});
  seen[0].position.transfers.under_way.ranks = {-1, 2, 0};
  seen[1].position.transfers = {};
  EXPECT_THAT(StuckPairs(seen), IsEmpty());
}

TEST(StuckPairsTest, OnlyAnswersToThisQueryCount) {
  std::vector<Seen> seen = Answers({{{1, UnderWay()}}, {{0, UnderWay()}}});
  seen[1].silence = absl::Seconds(1);
  EXPECT_THAT(StuckPairs(seen), IsEmpty());
  seen[1].silence = absl::ZeroDuration();
  seen[1].how = Seen::How::kLeft;
  EXPECT_THAT(StuckPairs(seen), IsEmpty());
}

// Random worlds, against the definition.
TEST(StuckPairsTest, AreThosePairsAndNoOthers) {
  size_t stuck_worlds = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const int world = 2 + static_cast<int>(random() % (seed % 10 == 0 ? 80 : 6));
    std::vector<Peers> ranks(static_cast<size_t>(world));
    const uint32_t density = 1 + random() % 20;
    for (int rank = 0; rank < world; ++rank) {
      for (int peer = 0; peer < world; ++peer) {
        const uint32_t what = random() % (4 * density);
        if (what < 3) ranks[static_cast<size_t>(rank)][peer] = {7, what != 1, what > 0};
      }
      if (random() % (2 * density) == 0) {
        ranks[static_cast<size_t>(rank)][kAny] = Unfinished(random());
      }
    }
    std::set<std::pair<int, int>> expected;
    for (int one = 0; one < world; ++one) {
      for (const auto& [other, peer] : ranks[static_cast<size_t>(one)]) {
        if (!peer.under_way || other == one || other == kAny) continue;
        const Peers& its = ranks[static_cast<size_t>(other)];
        if (its.contains(kAny) || its.contains(one)) {
          expected.emplace(std::min(one, other), std::max(one, other));
        }
      }
    }
    // Not all fit into one answer; other ones into the next.
    std::set<std::pair<int, int>> found;
    for (uint32_t query = 1; query <= 12; ++query) {
      std::vector<Seen> answers = Answers(ranks, 60, query);
      for (Seen& seen : answers) {
        const std::string bytes = Encode(seen.position);
        ASSERT_LE(bytes.size(), kPositionLimit);
        seen.position = *ParsePosition(bytes);
      }
      const Pairs pairs = StuckPairs(answers);
      EXPECT_LE(pairs.size(), kMostPairs);
      found.insert(pairs.begin(), pairs.end());
      if (world <= 7) {
        EXPECT_EQ(pairs.size(), std::min(expected.size(), kMostPairs));
      }
    }
    EXPECT_TRUE(std::includes(expected.begin(), expected.end(), found.begin(), found.end()))
        << seed;
    EXPECT_EQ(found.empty(), expected.empty()) << seed;
    stuck_worlds += expected.empty() ? 0 : 1;
  }
  EXPECT_GT(stuck_worlds, 50U);
  EXPECT_LT(stuck_worlds, 390U);
}

// In a ring of many, each rank lists only some of its peers: ranks agree which.
TEST(StuckPairsTest, AreFoundInALargeWorldWithinOneQuery) {
  constexpr int kWorld = 500;
  std::vector<Peers> ranks(kWorld);
  for (int rank = 0; rank < kWorld; ++rank) {
    for (int peer = 0; peer < kWorld; ++peer) {
      if (peer != rank) ranks[static_cast<size_t>(rank)][peer] = UnderWay();
    }
  }
  const std::vector<Seen> answers = Answers(ranks);
  EXPECT_EQ(answers[0].position.transfers.under_way.all, 499U);
  EXPECT_EQ(StuckPairs(answers).size(), kMostPairs);
}

}  // namespace
}  // namespace railhead::recorder
