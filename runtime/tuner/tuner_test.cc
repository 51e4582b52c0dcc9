// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuner/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cstdint>

#include "runtime/tuner/places_for_test.h"

namespace railhead::tuner {
namespace {

using collectives::Algorithm;
using collectives::Collective;
using collectives::kCollectiveNames;
using ::testing::HasSubstr;

// Every collective has an answer, however the ranks are connected.
TEST(TunerTest, ThereIsAlwaysAnAlgorithm) {
  for (size_t c = 0; c < kCollectiveNames.size(); ++c) {
    const auto collective = static_cast<Collective>(c);
    if (collective == Collective::kSendReceive) continue;
    for (const int most_peers : {INT_MAX, 2}) {
      Network network;
      network.most_peers = most_peers;
      for (const int ranks : {1, 2, 3, 5, 8, 64, 65, 4096, 10000}) {
        const Tuner tuner(ranks, network, {});
        for (size_t bytes = 0; bytes < size_t{1} << 34; bytes = 2 * bytes + 1) {
          const auto estimates = Estimates(collective, bytes, ranks, network);
          ASSERT_FALSE(estimates.empty());
          EXPECT_EQ(tuner.Choose(collective, bytes), estimates.front().choice);
          EXPECT_TRUE(estimates.front().is_modest() || most_peers < ranks - 1)
              << Name(estimates.front().choice.algorithm);
          for (const Estimate& e : estimates) EXPECT_GE(e.seconds, 0) << Name(e.choice.algorithm);
        }
      }
    }
  }
}

// With all-reduce of 64 ranks: few steps for small messages, few bytes for large ones.
TEST(TunerTest, SmallMessagesSaveStepsAndLargeOnesBytes) {
  const Tuner tuner(64, {}, {});
  EXPECT_EQ(tuner.Choose(Collective::kAllReduce, 8).algorithm, Algorithm::kRecursiveDoubling);
  EXPECT_EQ(tuner.Choose(Collective::kAllReduce, size_t{1} << 20).algorithm,
            Algorithm::kHalvingDoubling);
  EXPECT_EQ(tuner.Choose(Collective::kAllToAll, 64 * 8).algorithm, Algorithm::kBruck);
  EXPECT_EQ(tuner.Choose(Collective::kAllToAll, size_t{1} << 28).algorithm, Algorithm::kPairwise);
  EXPECT_EQ(tuner.Choose(Collective::kBroadcast, 8).algorithm, Algorithm::kBinomial);
}

Algorithm Chosen(Collective collective, size_t bytes, int ranks) {
  return Tuner(ranks, {}, {}).Choose(collective, bytes).algorithm;
}

// A step around a ring costs as much as 20 KB. So a ring, which is the easier way for a network, is
// for parts that are larger than a few steps.
TEST(TunerTest, ManyRanksSaveStepsUntilPartsAreLarge) {
  for (const int ranks : {16, 65, 1024, 10000}) {
    const auto parts = [&](size_t each) { return static_cast<size_t>(ranks) * each; };
    EXPECT_EQ(Chosen(Collective::kAllGather, parts(8), ranks), Algorithm::kBruck);
    EXPECT_EQ(Chosen(Collective::kAllGather, parts(4096), ranks), Algorithm::kBruck);
    EXPECT_EQ(Chosen(Collective::kAllGather, parts(1 << 20), ranks), Algorithm::kRing);
    EXPECT_EQ(Chosen(Collective::kReduceScatter, parts(8), ranks), Algorithm::kRecursiveHalving);
    EXPECT_EQ(Chosen(Collective::kReduceScatter, parts(4096), ranks), Algorithm::kRecursiveHalving);
    EXPECT_EQ(Chosen(Collective::kReduceScatter, parts(1 << 20), ranks), Algorithm::kRing);
    if (ranks == 16) continue;
    EXPECT_EQ(Chosen(Collective::kBroadcast, 8, ranks), Algorithm::kBinomial);
    EXPECT_EQ(Chosen(Collective::kBroadcast, 1 << 20, ranks), Algorithm::kScatterAllGather);
    EXPECT_EQ(Chosen(Collective::kBroadcast, size_t{256} << 20U, ranks),
              ranks < 10000 ? Algorithm::kRing : Algorithm::kScatterAllGather);
    // Messages that do not wait for each other are cheap: also in large worlds.
    EXPECT_EQ(Chosen(Collective::kAllToAll, parts(8), ranks), Algorithm::kBruck);
    EXPECT_EQ(Chosen(Collective::kAllToAll, parts(size_t{4} << 20U), ranks), Algorithm::kPairwise);
    for (const Collective collective : {Collective::kGather, Collective::kScatter}) {
      EXPECT_EQ(Chosen(collective, parts(8), ranks), Algorithm::kBinomial);
      EXPECT_EQ(Chosen(collective, parts(size_t{4} << 20U), ranks), Algorithm::kDirect);
    }
  }
}

// What a few bytes take among many.
TEST(TunerTest, SmallOnesTakeLogarithmicTime) {
  for (const Collective collective : {Collective::kAllGather, Collective::kReduceScatter}) {
    const auto seconds = [&](int ranks) {
      return Estimates(collective, static_cast<size_t>(ranks), ranks, {}).front().seconds;
    };
    EXPECT_LT(seconds(1024), 300e-6);
    EXPECT_LT(seconds(10000), 400e-6);
  }
}

// Blocks of 4 MiB of 65 ranks are 260 MiB.
TEST(TunerTest, WhatTakesMuchMemoryIsForThoseWhoAskForIt) {
  constexpr size_t kBytes = size_t{65} << 22U;
  for (const Collective collective :
       {Collective::kGather, Collective::kScatter, Collective::kAllToAll}) {
    const auto estimates = Estimates(collective, kBytes, 65, {});
    ASSERT_EQ(estimates.size(), 2U);
    EXPECT_EQ(estimates[0].memory, 0U) << Name(collective);
    EXPECT_GE(estimates[1].memory, kBytes) << Name(collective);
    EXPECT_FALSE(estimates[1].is_modest());
  }
  // Where it would be the fastest, too.
  Network network;
  network.alpha = 1;
  EXPECT_EQ(Tuner(65, network, {}).Choose(Collective::kGather, kBytes).algorithm,
            Algorithm::kDirect);
  EXPECT_EQ(Tuner(65, network, *ParsePins("gather=binomial"))
                .Choose(Collective::kGather, kBytes)
                .algorithm,
            Algorithm::kBinomial);
}

// Known values of the model: two ranks, 1 MB at 1 GB/s, nothing else costs.
TEST(TunerTest, TheModelCountsBytes) {
  const Network network = {0, 1e-9, 0};
  for (const Estimate& e : Estimates(Collective::kAllReduce, 1000000, 2, network)) {
    if (e.choice.algorithm == Algorithm::kRing ||
        e.choice.algorithm == Algorithm::kHalvingDoubling ||
        e.choice.algorithm == Algorithm::kRecursiveDoubling ||
        e.choice.algorithm == Algorithm::kDirect) {
      EXPECT_NEAR(e.seconds, 1e-3, 1e-9) << Name(e.choice.algorithm);
    }
  }
}

TEST(PlacesTest, TheModelCountsWhatIsDoneInMemoryAndTheFastestWayAmongPlaces) {
  const auto seconds = [](Collective collective, size_t bytes) {
    for (const Estimate& e : Estimates(collective, bytes, 32, Places())) {
      if (e.choice.algorithm == Algorithm::kHierarchical) return e.seconds;
    }
    return 0.0;
  };
  // 8 bytes: in memory, and two exchanges of one leader.
  EXPECT_NEAR(seconds(Collective::kAllReduce, 8), 2e-6 + 2 * 20e-6, 1e-8);
  EXPECT_NEAR(seconds(Collective::kBarrier, 0), 2e-6 + 2 * 20e-6, 1e-8);
  // 800 MB: in memory, and around a ring of four a part of 100 MB.
  EXPECT_NEAR(seconds(Collective::kAllReduce, 800000000), 80e-3 + 1.5 * 10e-3, 1e-3);
  EXPECT_NEAR(seconds(Collective::kAllGather, 800000000), 80e-3 + 0.75 * 10e-3, 1e-3);
}

TEST(PlacesTest, AreUsedWhereTheyAreFaster) {
  const Tuner tuner(32, Places(), {});
  EXPECT_EQ(tuner.Choose(Collective::kAllReduce, 8).algorithm, Algorithm::kHierarchical);
  EXPECT_EQ(tuner.Choose(Collective::kAllReduce, 8).among_places, Algorithm::kRecursiveDoubling);
  EXPECT_EQ(tuner.Choose(Collective::kAllReduce, 1 << 28).algorithm, Algorithm::kHierarchical);
  Network slow = Places();
  slow.local_alpha = 1;
  EXPECT_EQ(Tuner(32, slow, {}).Choose(Collective::kAllReduce, 8).algorithm,
            Algorithm::kRecursiveDoubling);
}

TEST(PlacesTest, APinOfAnotherAlgorithmIsForTheRanksOfDifferentPlaces) {
  const Tuner tuner(32, Places(), *ParsePins("all_reduce=hierarchical,all_reduce=double_tree"));
  EXPECT_EQ(tuner.Choose(Collective::kAllReduce, 1 << 20).algorithm, Algorithm::kHierarchical);
  EXPECT_EQ(tuner.Choose(Collective::kAllReduce, 1 << 20).among_places, Algorithm::kDoubleTree);
  const Tuner nowhere(32, {}, *ParsePins("all_reduce=hierarchical,all_reduce=double_tree"));
  EXPECT_EQ(nowhere.Choose(Collective::kAllReduce, 1 << 20).algorithm, Algorithm::kDoubleTree);
}

TEST(PinsTest, TheFirstThatFitsIsFollowed) {
  const auto pins = ParsePins("all_reduce<=64K=double_tree, all_reduce=ring,all_to_all=bruck");
  ASSERT_TRUE(pins.ok()) << pins.status();
  ASSERT_EQ(pins->size(), 3U);
  const Tuner tuner(8, {}, *pins);
  EXPECT_EQ(tuner.Choose(Collective::kAllReduce, 65536).algorithm, Algorithm::kDoubleTree);
  EXPECT_EQ(tuner.Choose(Collective::kAllReduce, 65537).algorithm, Algorithm::kRing);
  EXPECT_EQ(tuner.Choose(Collective::kAllToAll, 1 << 30).algorithm, Algorithm::kBruck);
  EXPECT_TRUE(tuner.IsPinned(Collective::kAllReduce, 1));
  EXPECT_FALSE(tuner.IsPinned(Collective::kBroadcast, 1));
  EXPECT_TRUE(ParsePins("")->empty());
}

// Ranks that a place has more than the smallest one make rounds of their own, through the same
// leaders.
TEST(TunerTest, UnevenPlacesTakeRoundsForTheRanksThatLeadNothing) {
  const auto hierarchical = [](Collective collective, size_t bytes, int ranks,
                               const Network& network) {
    for (const Estimate& estimate : Estimates(collective, bytes, ranks, network)) {
      if (estimate.choice.algorithm == Algorithm::kHierarchical) return estimate.seconds;
    }
    return 0.0;
  };
  Network even = Places();  // 4 places of 8
  Network uneven = even;    // 12, 8, 6 and 6
  uneven.columns = 6;
  uneven.rounds = 7;
  const double few = hierarchical(Collective::kAllGather, 32, 32, even);
  // Two steps around the circle of places.
  EXPECT_NEAR(few, 4 * 2e-6 + 2 * 24e-6, 1e-6);
  EXPECT_NEAR(hierarchical(Collective::kAllGather, 32, 32, uneven), 12 * 2e-6 + 7 * 2 * 24e-6,
              1e-6);
  EXPECT_EQ(hierarchical(Collective::kBarrier, 0, 32, uneven),
            hierarchical(Collective::kBarrier, 0, 32, even));
  // The bytes of a column are a sixth in place of an eighth.
  const size_t large = size_t{1} << 30U;
  const double ratio = hierarchical(Collective::kAllGather, large, 32, uneven) /
                       hierarchical(Collective::kAllGather, large, 32, even);
  EXPECT_GT(ratio, 1.01);
  EXPECT_LT(ratio, 8.0 / 6);
}

TEST(PinsTest, WhatCannotBeDoneIsNotFollowed) {
  Network network;
  network.most_peers = 98;
  const Tuner tuner(100, network, *ParsePins("all_to_all=pairwise"));
  EXPECT_EQ(tuner.Choose(Collective::kAllToAll, 1 << 30).algorithm, Algorithm::kBruck);
}

TEST(PinsTest, ThoseThatNobodyCanFollowAreAnError) {
  const auto error = [](const char* text, const Network& network, const char* flat = "") {
    return std::string(CheckPins(*ParsePins(text), 6, network, flat).message());
  };
  Network network;
  EXPECT_EQ(error("all_to_all=pairwise,gather=direct,all_reduce=direct", network), "");
  EXPECT_THAT(
      error("all_reduce=ring,all_reduce=hierarchical", network, "pods differ"),
      AllOf(HasSubstr("'all_reduce=hierarchical' cannot be followed"), HasSubstr("pods differ")));
  network.most_peers = 4;
  EXPECT_THAT(error("all_to_all<=64K=pairwise", network),
              AllOf(HasSubstr("'all_to_all<=65536=pairwise' cannot be followed"),
                    HasSubstr("connects a rank with 5 others"), HasSubstr("RLIMIT_MEMLOCK"),
                    HasSubstr("connections to 4")));
  EXPECT_EQ(error("all_to_all=bruck,all_gather=ring", network), "");
  // Columns have three ranks each.
  network.places = 3;
  network.columns = 2;
  network.most_peers = 2;
  EXPECT_EQ(error("all_reduce=hierarchical,all_reduce=double_tree", network), "");
  EXPECT_EQ(error("all_reduce=hierarchical,all_reduce=direct", network), "");
  network.most_peers = 1;
  EXPECT_THAT(
      error("all_reduce=hierarchical,all_reduce=direct", network),
      HasSubstr("'all_reduce=direct' cannot be followed: it connects a rank with 2 others"));
}

TEST(PinsTest, ThoseThatAnotherOneHidesAreAnError) {
  Network network;
  network.places = 3;
  network.columns = 2;
  const auto error = [&](const char* text) {
    return std::string(CheckPins(*ParsePins(text), 6, network, "").message());
  };
  EXPECT_EQ(error("all_reduce<=8K=ring,all_reduce<=64K=double_tree,all_reduce=direct"), "");
  EXPECT_EQ(error("all_reduce=ring,broadcast=ring"), "");
  EXPECT_THAT(error("all_reduce<=64K=ring,all_reduce<=8K=double_tree"),
              HasSubstr("'all_reduce<=8192=double_tree' cannot be followed: "
                        "'all_reduce<=65536=ring' comes before it"));
  EXPECT_THAT(error("all_gather=ring,all_gather=hierarchical"),
              HasSubstr("'all_gather=hierarchical' cannot be followed: 'all_gather=ring'"));
  EXPECT_THAT(error("all_gather=hierarchical,all_gather=bruck,all_gather=ring"),
              HasSubstr("'all_gather=ring' cannot be followed: 'all_gather=bruck'"));
}

// Two ranks have one message each to send, however it is called: what copies besides is never best.
TEST(TunerTest, TwoRanksExchangeWithoutCopies) {
  for (const double alpha : {1e-7, 1e-6, 1e-4}) {
    Network network;
    network.alpha = alpha;
    const Tuner tuner(2, network, {});
    for (size_t bytes = 2; bytes <= size_t{1} << 30U; bytes *= 4) {
      EXPECT_EQ(tuner.Choose(Collective::kAllToAll, bytes).algorithm, Algorithm::kPairwise)
          << bytes;
    }
  }
}

TEST(PinsTest, WrongOnesAreNamed) {
  const auto error = [](const char* text) {
    return std::string(ParsePins(text).status().message());
  };
  EXPECT_THAT(error("all_reduce"), HasSubstr("'all_reduce': no algorithm given"));
  EXPECT_THAT(error("all_reduce<=8"), HasSubstr("no algorithm given"));
  EXPECT_THAT(error("allreduce=ring"), HasSubstr("unknown collective"));
  EXPECT_THAT(error("send_receive=direct"), HasSubstr("unknown collective"));
  EXPECT_THAT(
      error("all_reduce=bruck"),
      HasSubstr("its algorithms are ring, recursive_doubling, halving_doubling, double_tree, "
                "direct"));
  EXPECT_THAT(error("all_gather=direct"),
              HasSubstr("its algorithms are ring, bruck, hierarchical"));
  EXPECT_THAT(error("all_reduce<=8T=ring"), HasSubstr("the size is not a number"));
  EXPECT_THAT(error("all_reduce<=99999999999999G=ring"), HasSubstr("the size is not a number"));
  EXPECT_THAT(error("all_reduce=ring,,"), HasSubstr("'': no algorithm given"));
  EXPECT_THAT(error("all_reduce=ring,"), HasSubstr("'': no algorithm given"));
  EXPECT_THAT(error("all_reduce=ring,=ring"), HasSubstr("'=ring': no algorithm given"));
}

}  // namespace
}  // namespace railhead::tuner
