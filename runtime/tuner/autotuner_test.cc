// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuner/autotuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/tuner/places_for_test.h"

namespace railhead::tuner {
namespace {

using collectives::Algorithm;
using collectives::Collective;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr size_t kMiB = size_t{1} << 20U;

// What ways really take: the model's estimates, each wrong by a factor of its own.
class Reality {
 public:
  Reality(const Tuner& tuner, double wrong, unsigned seed)
      : tuner_(tuner), wrong_(wrong), random_(seed) {}

  double Seconds(Collective collective, const Choice& choice, size_t bytes) {
    const auto [at, added] = factors_.try_emplace(Name(choice), 1);
    if (added) {
      at->second = std::pow(wrong_, std::uniform_real_distribution<double>(-0.5, 0.5)(random_));
    }
    return at->second * tuner_.Seconds(collective, choice, bytes);
  }

 private:
  Tuner tuner_;
  double wrong_;
  std::mt19937 random_;
  std::map<std::string, double> factors_;
};

// Does a call alone.
Choice Call(Autotuner& autotuner, Reality& reality, Collective collective, size_t bytes) {
  const Autotuner::Turn turn = autotuner.Next(collective, bytes);
  if (turn.trial != nullptr &&
      turn.trial->Record(turn.scale * reality.Seconds(collective, turn.choice, bytes))) {
    turn.trial->Agree(turn.trial->times());
  }
  return turn.choice;
}

TEST(AutotunerTest, RanksAlwaysChooseAlikeAndFindTheFastestAlthoughTheModelIsWrong) {
  std::mt19937 random(3);
  constexpr double kWrong = 2;
  int changed = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const int count = static_cast<int>(2 + random() % 7);
    const Tuner tuner(count, {}, {});
    Reality reality(tuner, kWrong, seed);
    std::vector<Autotuner> ranks;
    for (int rank = 0; rank < count; ++rank) ranks.emplace_back(tuner);
    const size_t largest = size_t{1} << (3 + random() % 22);
    const auto collective = random() % 2 == 0 ? Collective::kAllReduce : Collective::kBroadcast;
    for (int call = 0; call < 60; ++call) {
      const size_t bytes = largest / 2 + 1 + random() % (largest / 2);
      std::vector<Autotuner::Turn> turns;
      for (Autotuner& rank : ranks) turns.push_back(rank.Next(collective, bytes));
      bool agree = false;
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        ASSERT_EQ(turns[rank].choice, turns[0].choice);
        ASSERT_EQ(turns[rank].trial == nullptr, turns[0].trial == nullptr);
        if (turns[rank].trial == nullptr) continue;
        const double seconds = reality.Seconds(collective, turns[rank].choice, bytes);
        // Ranks come one after the other, and wait for the last of them.
        const double waited =
            0.2 * seconds * static_cast<double>((rank + static_cast<size_t>(call)) % ranks.size()) /
            static_cast<double>(count);
        agree = turns[rank].trial->Record(turns[rank].scale * (seconds + waited));
      }
      if (!agree) continue;
      AlgorithmTrial::Times agreed{};
      for (const Autotuner::Turn& turn : turns) {
        for (size_t i = 0; i < agreed.size(); ++i) {
          agreed[i] += turn.trial->times()[i] / static_cast<double>(count);
        }
      }
      for (const Autotuner::Turn& turn : turns) turn.trial->Agree(agreed);
    }
    // The fastest of those that are tried; a little slower is as good.
    const auto estimates = tuner.Estimates(collective, largest);
    const Choice chosen = ranks[0].Next(collective, largest).choice;
    double best = reality.Seconds(collective, estimates[0].choice, largest);
    for (size_t i = 0; i < std::min(AlgorithmTrial::kMostWays, estimates.size()); ++i) {
      if (estimates[i].seconds > kWrong * estimates[0].seconds || !estimates[i].is_modest()) break;
      best = std::min(best, reality.Seconds(collective, estimates[i].choice, largest));
    }
    EXPECT_LE(reality.Seconds(collective, chosen, largest), 1.1 * best + 1e-12)
        << Name(chosen) << " of " << largest << " bytes among " << count;
    changed += chosen == estimates[0].choice ? 0 : 1;
  }
  EXPECT_GT(changed, 5);
}

TEST(AutotunerTest, WhatTheModelExpectsToBeMuchSlowerIsNeverTried) {
  const Tuner tuner(64, {}, {});
  Autotuner autotuner(tuner);
  Reality reality(tuner, 2, 1);
  for (size_t bytes = 1; bytes <= size_t{1} << 30; bytes *= 2) {
    const auto estimates = tuner.Estimates(Collective::kAllReduce, bytes);
    for (int call = 0; call < 100; ++call) {
      const Choice choice = Call(autotuner, reality, Collective::kAllReduce, bytes);
      EXPECT_LE(tuner.Seconds(Collective::kAllReduce, choice, bytes), 2 * estimates[0].seconds);
    }
  }
}

TEST(AutotunerTest, NothingIsLearntWhereThereIsNoChoice) {
  const auto learns = [](Autotuner autotuner, Collective collective, size_t bytes) {
    return autotuner.Next(collective, bytes).trial != nullptr;
  };
  const Tuner tuner(8, {}, {});
  EXPECT_TRUE(learns(Autotuner(tuner), Collective::kAllReduce, kMiB));
  EXPECT_FALSE(learns(Autotuner(tuner), Collective::kAllReduce, 0)) << "nothing moves";
  EXPECT_TRUE(learns(Autotuner(tuner), Collective::kAllGather, kMiB));
  EXPECT_FALSE(learns(Autotuner(Tuner(2, {}, {})), Collective::kAllGather, kMiB)) << "one way";
  EXPECT_FALSE(learns(Autotuner(Tuner(1, {}, {})), Collective::kAllReduce, kMiB)) << "alone";
}

// Blocks of 4 MiB of 65 ranks are 260 MiB, which a binomial tree would keep besides.
TEST(AutotunerTest, WhatTakesMuchMemoryIsNeverTried) {
  const Tuner tuner(65, {}, {});
  Autotuner autotuner(tuner);
  Reality reality(tuner, 1.0, 1);
  for (const Collective collective : {Collective::kGather, Collective::kScatter}) {
    for (size_t call = 0; call < AlgorithmTrial::kMostWays * AlgorithmTrial::kTurn; ++call) {
      ASSERT_EQ(Call(autotuner, reality, collective, 65 * 4 * kMiB).algorithm, Algorithm::kDirect);
    }
    EXPECT_THAT(autotuner.Explain(collective, 65 * 4 * kMiB),
                HasSubstr(", and 260 MiB more memory: only if RAILHEAD_ALGO selects it"));
  }
}

TEST(AutotunerTest, NothingIsLearntOfWaysThatAreTheSame) {
  const auto tried = [](int ranks, Collective collective) {
    const Tuner tuner(ranks, {}, {});
    Autotuner autotuner(tuner);
    Reality reality(tuner, 1.0, 1);
    std::set<Algorithm> algorithms;
    for (size_t call = 0; call < AlgorithmTrial::kMostWays * AlgorithmTrial::kTurn; ++call) {
      algorithms.insert(Call(autotuner, reality, collective, 8).algorithm);
    }
    return algorithms;
  };
  // One exchange, or two of halves.
  EXPECT_THAT(tried(2, Collective::kAllReduce),
              UnorderedElementsAre(Algorithm::kRecursiveDoubling, Algorithm::kRing));
  EXPECT_THAT(tried(2, Collective::kAllToAll), SizeIs(1));
  EXPECT_THAT(tried(2, Collective::kReduceScatter), SizeIs(1));
  EXPECT_THAT(tried(3, Collective::kAllReduce), Contains(Algorithm::kDirect));
  EXPECT_THAT(tried(4, Collective::kAllReduce),
              AllOf(Contains(Algorithm::kRecursiveDoubling), Contains(Algorithm::kDirect)));
}

TEST(AutotunerTest, PinsAreFollowedAndNotCounted) {
  const Tuner tuner(8, {}, *ParsePins("all_reduce<=1000000=double_tree"));
  Autotuner autotuner(tuner);
  Reality reality(tuner, 2, 1);
  for (int call = 0; call < 2000; ++call) {
    ASSERT_EQ(Call(autotuner, reality, Collective::kAllReduce, 1000000).algorithm,
              Algorithm::kDoubleTree);
  }
  EXPECT_THAT(autotuner.Explain(Collective::kAllReduce, 1000000),
              AllOf(HasSubstr("double_tree, set by RAILHEAD_ALGO"), Not(HasSubstr("measured"))));
  // Of the same class, but not laid down.
  EXPECT_THAT(autotuner.Explain(Collective::kAllReduce, 1000001),
              AllOf(HasSubstr("estimated: "), Not(HasSubstr("measured"))));
  EXPECT_NE(autotuner.Next(Collective::kAllReduce, 1000001).trial, nullptr);
}

TEST(AutotunerTest, HierarchicalWaysLeaveRoomForAnother) {
  Network network = Places();
  // As slow as if there were none.
  network.local_alpha = 100e-6;
  const Tuner tuner(32, network, {});
  Autotuner autotuner(tuner);
  Reality reality(tuner, 1.0, 1);
  std::map<std::string, int> tried;
  for (size_t call = 0; call < AlgorithmTrial::kMostWays * AlgorithmTrial::kTurn; ++call) {
    ++tried[Name(Call(autotuner, reality, Collective::kAllReduce, 8))];
  }
  EXPECT_EQ(tried.size(), 3U);
  EXPECT_GT(tried["recursive_doubling"], 0);
}

TEST(AutotunerTest, ExplainsEstimatesAndWhatWasMeasured) {
  const Tuner tuner(32, Places(), {});
  Autotuner autotuner(tuner);
  const std::string before = autotuner.Explain(Collective::kAllReduce, kMiB);
  EXPECT_THAT(before,
              AllOf(HasSubstr("all_reduce of 1048576 bytes among 32 ranks: hierarchical ("),
                    HasSubstr("estimated: the fastest by the model, until calls of up to 1048576 "
                              "bytes have tried those marked +"),
                    HasSubstr("4 places of 8 rank(s) or more, each with separate memory: "
                              "hierarchical takes 2.0 us there "
                              "and 0.100 ns for each byte, and what the way in brackets takes "
                              "among the places"),
                    HasSubstr("*+ hierarchical ("), Not(HasSubstr("measured"))));
  // The first is really slower.
  const auto estimates = tuner.Estimates(Collective::kAllReduce, kMiB);
  for (int call = 0; call < 60; ++call) {
    const Autotuner::Turn turn = autotuner.Next(Collective::kAllReduce, kMiB);
    if (turn.trial->Record(turn.choice == estimates[0].choice ? 300e-6 : 222e-6)) {
      turn.trial->Agree(turn.trial->times());
    }
  }
  const std::string after = autotuner.Explain(Collective::kAllReduce, kMiB);
  EXPECT_THAT(after, AllOf(HasSubstr("learnt: the fastest in calls of up to 1048576 bytes that "
                                     "have tried those marked +"),
                           HasSubstr("300.0 us measured"), HasSubstr("222.0 us measured"),
                           HasSubstr(" + " + Name(estimates[0].choice)),
                           HasSubstr("*+ " + Name(estimates[1].choice))));
}

// Half as many bytes took half as long, where only bytes cost: that is the same speed.
TEST(AutotunerTest, OtherSizesOfAClassAreScaledByTheModel) {
  const Tuner tuner(2, {0, 1e-9, 0}, {});
  Autotuner autotuner(tuner);
  for (int call = 0; call < 60; ++call) {
    const size_t bytes = call % 2 == 0 ? kMiB : kMiB * 3 / 4;
    const Autotuner::Turn turn = autotuner.Next(Collective::kAllReduce, bytes);
    if (turn.trial->Record(turn.scale * static_cast<double>(bytes) * 1e-9)) {
      turn.trial->Agree(turn.trial->times());
    }
  }
  EXPECT_THAT(autotuner.Explain(Collective::kAllReduce, kMiB), HasSubstr("1048.6 us measured"));
  EXPECT_THAT(autotuner.Explain(Collective::kAllReduce, 600000), HasSubstr("600.0 us measured"));
}

}  // namespace
}  // namespace railhead::tuner
