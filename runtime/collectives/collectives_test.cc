// SPDX-License-Identifier: Apache-2.0
//
// Every collective over messages, in a simulated world: many ranks, many schedules.

#include "runtime/testing/collectives.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/binomial.h"
#include "runtime/collectives/bruck_alltoall.h"
#include "runtime/collectives/direct.h"
#include "runtime/collectives/direct_allreduce.h"
#include "runtime/collectives/double_tree.h"
#include "runtime/collectives/halving_doubling.h"
#include "runtime/collectives/pairwise_alltoall.h"
#include "runtime/collectives/recursive_doubling.h"
#include "runtime/collectives/ring_allgather.h"
#include "runtime/collectives/ring_allreduce.h"
#include "runtime/collectives/ring_broadcast.h"
#include "runtime/collectives/ring_reduce.h"
#include "runtime/collectives/ring_reduce_scatter.h"
#include "runtime/collectives/timetable.h"
#include "runtime/testing/ranks.h"
#include "runtime/testing/simulated_messenger.h"

namespace railhead::collectives {
namespace {

using railhead::testing::Collective;
using railhead::testing::CollectiveCase;
using railhead::testing::HasRoot;
using railhead::testing::kCollectives;
using railhead::testing::RunRanks;
using railhead::testing::SimulatedMessenger;
using railhead::testing::SimulatedWorld;
using railhead::testing::Trial;

// The ways to do a collective, by number.
using Way = std::function<absl::Status(Messenger& messenger, int rank, int ranks,
                                       const CollectiveCase& c, Trial& trial)>;

reduce::Reduction ReductionOf(const CollectiveCase& c, int ranks) {
  return {c.type, c.op, ranks, {}};
}
size_t BytesOf(const CollectiveCase& c) { return c.count * reduce::SizeOf(c.type); }
Parts Blocks(int ranks, size_t each) {
  const auto count = static_cast<size_t>(ranks);
  return {count, count * each};
}

template <class Algorithm>
Way AllReduceBy(Algorithm algorithm) {
  return [algorithm](Messenger& messenger, int rank, int ranks, const CollectiveCase& c,
                     Trial& trial) {
    return algorithm(messenger, rank, ranks, ReductionOf(c, ranks), trial.send(), trial.receive(),
                     c.count);
  };
}
template <class Algorithm>
Way BroadcastBy(Algorithm algorithm) {
  return [algorithm](Messenger& messenger, int rank, int ranks, const CollectiveCase& c,
                     Trial& trial) {
    return algorithm(messenger, rank, ranks, c.root, trial.send(), trial.receive(), BytesOf(c));
  };
}
template <class Algorithm>
Way ReduceBy(Algorithm algorithm) {
  return [algorithm](Messenger& messenger, int rank, int ranks, const CollectiveCase& c,
                     Trial& trial) {
    return algorithm(messenger, rank, ranks, c.root, ReductionOf(c, ranks), trial.send(),
                     trial.receive(), c.count);
  };
}

const std::vector<Way>& WaysOf(Collective collective) {
  static const std::map<Collective, std::vector<Way>> kWays = {
      {Collective::kAllReduce,
       {AllReduceBy(RingAllReduce), AllReduceBy(RecursiveDoublingAllReduce),
        AllReduceBy(HalvingDoublingAllReduce), AllReduceBy(DoubleTreeAllReduce),
        AllReduceBy(DirectAllReduce)}},
      {Collective::kAllGather,
       {[](Messenger& messenger, int rank, int ranks, const CollectiveCase& c, Trial& trial) {
         return RingAllGather(messenger, rank, ranks, trial.send(), trial.receive(),
                              Blocks(ranks, BytesOf(c)));
       }}},
      {Collective::kReduceScatter,
       {[](Messenger& messenger, int rank, int ranks, const CollectiveCase& c, Trial& trial) {
         return RingReduceScatter(messenger, rank, ranks, ReductionOf(c, ranks), trial.send(),
                                  trial.receive(), Blocks(ranks, c.count));
       }}},
      {Collective::kBroadcast, {BroadcastBy(RingBroadcast), BroadcastBy(BinomialBroadcast)}},
      {Collective::kReduce, {ReduceBy(RingReduce), ReduceBy(BinomialReduce)}},
      // They have none in place: a copy is what is sent.
      {Collective::kAllToAll,
       {[](Messenger& messenger, int rank, int ranks, const CollectiveCase& c, Trial& trial) {
          const Parts parts = Blocks(ranks, BytesOf(c));
          const std::vector<std::byte> copy(trial.send(), trial.send() + parts.total());
          return PairwiseAllToAll(messenger, rank, copy.data(), parts, trial.receive(), parts);
        },
        [](Messenger& messenger, int rank, int ranks, const CollectiveCase& c, Trial& trial) {
          const std::vector<std::byte> copy(trial.send(),
                                            trial.send() + Blocks(ranks, BytesOf(c)).total());
          return BruckAllToAll(messenger, rank, ranks, copy.data(), trial.receive(), BytesOf(c));
        }}},
      {Collective::kGather, {BroadcastBy(DirectGather), BroadcastBy(BinomialGather)}},
      {Collective::kScatter, {BroadcastBy(DirectScatter), BroadcastBy(BinomialScatter)}}};
  static const std::vector<Way> kNone;
  const auto found = kWays.find(collective);
  return found == kWays.end() ? kNone : found->second;
}

constexpr size_t kMostWays = 5;

void RunCases(int ranks, const std::vector<CollectiveCase>& cases, unsigned seed) {
  for (size_t way = 0; way < kMostWays; ++way) {
    SimulatedWorld world(ranks);
    const std::vector<std::string> wrong = RunRanks(ranks, [&](int rank) -> std::string {
      SimulatedMessenger messenger(world, rank, seed + static_cast<unsigned>(rank));
      for (size_t i = 0; i < cases.size(); ++i) {
        const CollectiveCase& c = cases[i];
        const std::vector<Way>& ways = WaysOf(c.collective);
        if (way >= ways.size()) continue;
        Trial trial(c, rank, ranks, i);
        const absl::Status status = ways[way](messenger, rank, ranks, c, trial);
        const std::string error =
            status.ok() ? trial.Check() : absl::StrCat(ToString(c), ": ", status.message());
        if (!error.empty()) return absl::StrCat("way ", way, ": ", error);
      }
      return "";
    });
    EXPECT_EQ(wrong, std::vector<std::string>(static_cast<size_t>(ranks))) << ranks << " ranks";
    EXPECT_TRUE(world.Empty());
  }
}

class SimulationTest : public ::testing::TestWithParam<int> {};

// 32768 values are the least segment of a part, 8192 that of a train; 8 and 16 segments, and a
// further round, begin at multiples of them.
TEST_P(SimulationTest, EveryCollectiveAndSizeInAndOutOfPlaceFromEveryRoot) {
  const int ranks = GetParam();
  std::vector<CollectiveCase> cases;
  for (const size_t count : {0, 1, 2, 12, 13, 1000, 8191, 8193, 32767, 32769, 65537}) {
    for (const Collective collective : kCollectives) {
      // All roots of small worlds, and some of large ones.
      for (int root = 0; root<(HasRoot(collective) ? ranks : 1); root += ranks> 5 ? 7 : 1) {
        cases.push_back({collective, rhUint32, rhSum, count, root, false});
        cases.push_back({collective, rhInt32, rhAvg, count, root, true});
      }
    }
  }
  RunCases(ranks, cases, 1);
}

TEST_P(SimulationTest, EveryType) {
  const int ranks = GetParam();
  std::vector<CollectiveCase> cases;
  for (int type = rhInt8; type <= rhUint16; ++type) {
    for (const Collective collective : kCollectives) {
      const auto t = static_cast<rhDataType_t>(type);
      cases.push_back({collective, t, rhAvg, 1001, ranks / 2, true});
      cases.push_back({collective, t, rhProd, 40000, ranks - 1, false});
    }
  }
  RunCases(ranks, cases, 3);
}

class LargeSimulationTest : public ::testing::TestWithParam<int> {};

TEST_P(LargeSimulationTest, ManySegments) {
  const int ranks = GetParam();
  std::vector<CollectiveCase> cases;
  for (const size_t count : {262143, 524287, 524289, 1100003}) {
    for (const Collective collective : kCollectives) {
      cases.push_back({collective, rhInt32, rhAvg, count, ranks - 1, count % 2 == 0});
      cases.push_back({collective, rhUint32, rhSum, count, 0, count % 2 != 0});
    }
  }
  RunCases(ranks, cases, 2);
}

// Where trees and exchanges have odd shapes.
TEST(WorldsTest, OfEverySize) {
  for (int ranks = 1; ranks <= 19; ++ranks) {
    std::vector<CollectiveCase> cases;
    for (const Collective collective : kCollectives) {
      cases.push_back({collective, rhInt32, rhAvg, 1003, ranks / 3, ranks % 2 == 0});
    }
    RunCases(ranks, cases, 5);
  }
}

TEST_P(SimulationTest, AnySuccession) {
  const int ranks = GetParam();
  for (unsigned seed = 0; seed < 3; ++seed) {
    std::mt19937 random(seed);
    std::vector<CollectiveCase> cases;
    for (int i = 0; i < 120; ++i) {
      const size_t largest = size_t{1} << (random() % 17);
      cases.push_back({kCollectives[random() % kCollectives.size()], rhInt32,
                       random() % 2 == 0 ? rhSum : rhAvg, random() % largest,
                       static_cast<int>(random() % static_cast<unsigned>(ranks)),
                       random() % 2 == 0});
    }
    RunCases(ranks, cases, seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, SimulationTest, ::testing::Values(1, 2, 3, 4, 5, 7, 8));
INSTANTIATE_TEST_SUITE_P(Ranks, LargeSimulationTest, ::testing::Values(1, 2, 3, 4));

TEST(TimetableTest, NeighboursAgreeAndEverythingComesAround) {
  for (const size_t ranks : {2, 3, 5, 8}) {
    for (const size_t count : {1, 7, 40, 1000003}) {
      for (const size_t largest : {size_t{131072}, size_t{262144}, SIZE_MAX}) {
        const auto timetable = [&](size_t rank) {
          return Timetable({.parts = Parts(ranks, count),
                            .first = rank,
                            .steps = ranks - 1,
                            .element = 4,
                            .largest_segment = largest});
        };
        for (size_t rank = 0; rank < ranks; ++rank) {
          const Timetable mine = timetable(rank);
          const Timetable next = timetable((rank + 1) % ranks);
          size_t received = 0;
          for (size_t n = 0; n < mine.total(); ++n) {
            EXPECT_EQ(mine.Sent(n).begin, next.Received(n).begin);
            EXPECT_EQ(mine.Sent(n).size, next.Received(n).size);
            EXPECT_LE(mine.Sent(n).size, mine.segment_size());
            received += mine.Received(n).size;
            if (mine.Step(n) == 0) continue;
            EXPECT_EQ(mine.Sent(n).begin, mine.Received(n - mine.segments()).begin);
          }
          const size_t own = count / ranks + (rank < count % ranks ? 1 : 0);
          EXPECT_EQ(received, count - own);
        }
      }
    }
  }
}

}  // namespace
}  // namespace railhead::collectives
