// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/silence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace railhead::recorder {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr absl::Duration kMoment = absl::Seconds(5);

absl::Time At(double second) { return absl::FromUnixSeconds(1700000000) + absl::Seconds(second); }

Position InCall(absl::Duration still) {
  Position position;
  position.collectives = 8;
  Doing& last = position.last.emplace();
  last.number = 7;
  last.still = still;
  return position;
}

class SilenceTest : public ::testing::Test {
 protected:
  // A query without duration, which ranks marked 'a' answer: rank 0 waits in a call since
  // second 0, the others do nothing. 's': silent, 'n': not asked, 'l': left.
  std::vector<Seen> Query(double second, const std::string& ranks, double asked = -1) {
    std::vector<Seen> seen(ranks.size());
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      Seen& one = seen[rank];
      one.how = ranks[rank] == 'a'   ? Seen::How::kAnswered
                : ranks[rank] == 's' ? Seen::How::kSilent
                : ranks[rank] == 'n' ? Seen::How::kNotAsked
                                     : Seen::How::kLeft;
      if (ranks[rank] == 'a' && rank == 0) one.position = InCall(absl::Seconds(second));
    }
    silence_.Note(At(asked < 0 ? second : asked), At(second), kMoment, seen);
    return seen;
  }
  // Queries from a second to another one.
  void Queries(double from, double to, const std::string& ranks) {
    for (double second = from; second <= to; second += 4) Query(second, ranks);
  }

  Silence silence_{kTimeout};
};

TEST_F(SilenceTest, ARankIsOverdueATimeoutAfterTheFirstQueryThatItHasMissed) {
  for (const std::string silent : {"s", "n"}) {
    silence_.Clear();
    Queries(100, 120, "aaa");
    Queries(124, 180, "aa" + silent);
    EXPECT_EQ(Query(183, "aa" + silent)[2].silence, absl::Seconds(59));
    EXPECT_FALSE(silence_.Overdue(At(183.9)));
    EXPECT_TRUE(silence_.Overdue(At(184)));
  }
}

TEST_F(SilenceTest, WhoAnswersLateOrHasLeftIsNotOverdue) {
  Queries(100, 150, "ass");
  Query(154, "aal");
  Queries(158, 210, "asl");
  EXPECT_FALSE(silence_.Overdue(At(211)));
  Queries(214, 218, "asl");
  EXPECT_TRUE(silence_.Overdue(At(218)));
}

TEST_F(SilenceTest, NobodyIsOverdueWhileNoOtherRankWaits) {
  for (double second = 100; second < 200; second += 4) {
    std::vector<Seen> seen(2);
    seen[0].how = Seen::How::kAnswered;
    seen[0].position = InCall(absl::Seconds(59));  // in another call each time
    seen[1].how = Seen::How::kSilent;
    silence_.Note(At(second), At(second), kMoment, seen);
    EXPECT_FALSE(silence_.Overdue(At(second)));
  }
  // The rank that waited is the one that does not answer.
  Queries(200, 300, "sa");
  EXPECT_FALSE(silence_.Overdue(At(300)));
}

TEST_F(SilenceTest, TransfersWaitAsOperationsDo) {
  for (double second = 0; second <= 64; second += 4) {
    std::vector<Seen> seen(2);
    seen[0].how = Seen::How::kAnswered;
    seen[0].position.transfers.still = absl::Seconds(second);
    seen[1].how = Seen::How::kSilent;
    silence_.Note(At(second), At(second), kMoment, seen);
    EXPECT_EQ(silence_.Overdue(At(second)), second >= 60);
  }
}

TEST_F(SilenceTest, WithoutQueriesSilenceBeginsAnew) {
  Query(100, "aas");
  Query(1000, "aas");
  EXPECT_FALSE(silence_.Overdue(At(1000)));
  EXPECT_FALSE(silence_.Overdue(At(1070)));  // of a query long ago
  // This process was stopped in the middle of a query.
  Queries(2000, 2040, "aaa");
  Query(2200, "aas", 2044);
  EXPECT_FALSE(silence_.Overdue(At(2201)));
}

TEST_F(SilenceTest, WhoMissesAMomentIsWhereItWas) {
  Query(100, "aa");
  Query(104, "ss");
  std::vector<Seen> seen = Query(108, "ss");
  EXPECT_EQ(seen[0].how, Seen::How::kAnswered);
  EXPECT_EQ(seen[0].position.last->number, 7U);
  seen = Query(112, "ss");
  EXPECT_EQ(seen[0].how, Seen::How::kSilent);
  EXPECT_EQ(seen[0].position.last->number, 7U);
  // Of a rank that never answered nothing is known.
  silence_.Clear();
  EXPECT_EQ(Query(116, "as")[1].how, Seen::How::kSilent);
}

// Random histories, against a search of the whole history after each query.
TEST_F(SilenceTest, IsThatOfItsHistory) {
  struct Past {
    double second;
    std::string ranks;
  };
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    silence_.Clear();
    std::vector<Past> history;
    // The object's first query.
    double second = 1000.0 * (seed + 1);
    std::string ranks(1 + random() % 6, 'a');
    for (int query = 0; query < 60; ++query) {
      for (size_t rank = 1; rank < ranks.size(); ++rank) {
        if (random() % 8 == 0) ranks[rank] = "assn"[random() % 4];
      }
      second += random() % 30 == 0 ? 25 + random() % 20 : 1 + random() % 6;
      history.push_back({second, ranks});
      const std::vector<Seen> seen = Query(second, ranks);
      bool overdue = false;
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        double since = second + 1;
        for (size_t i = history.size(); i-- > 0 && history[i].ranks[rank] != 'a';) {
          since = history[i].second;
          if (i == 0 || history[i].second - history[i - 1].second >= 30) break;
        }
        const double silence = std::max(0.0, second - since);
        EXPECT_EQ(seen[rank].silence, absl::Seconds(silence)) << seed << " " << query;
        overdue = overdue || silence >= 60;
      }
      EXPECT_EQ(silence_.Overdue(At(second)), overdue) << seed << " " << query;
    }
  }
}

}  // namespace
}  // namespace railhead::recorder
