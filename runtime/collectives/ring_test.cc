// SPDX-License-Identifier: Apache-2.0
//
// Every collective around the ring, in a simulated world: many ranks, many schedules.
#include "runtime/collectives/ring.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/collectives/ring_allgather.h"
#include "runtime/collectives/ring_allreduce.h"
#include "runtime/collectives/ring_barrier.h"
#include "runtime/collectives/ring_broadcast.h"
#include "runtime/collectives/ring_reduce.h"
#include "runtime/collectives/ring_reduce_scatter.h"
#include "runtime/collectives/timetable.h"
#include "runtime/testing/collectives.h"
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

// One rank's part of a case; "" or what is wrong.
std::string RunCase(Messenger& messenger, int rank, int ranks, const CollectiveCase& c,
                    uint64_t seed) {
  const reduce::Reduction reduction = {c.type, c.op, ranks, {}};
  const size_t bytes = c.count * reduce::SizeOf(c.type);
  Trial trial(c, rank, ranks, seed);
  const auto run = [&] {
    switch (c.collective) {
      case Collective::kAllReduce:
        return RingAllReduce(messenger, rank, ranks, reduction, trial.send(), trial.receive(),
                             c.count);
      case Collective::kAllGather:
        return RingAllGather(messenger, rank, ranks, trial.send(), trial.receive(), bytes);
      case Collective::kReduceScatter:
        return RingReduceScatter(messenger, rank, ranks, reduction, trial.send(), trial.receive(),
                                 c.count);
      case Collective::kBroadcast:
        return RingBroadcast(messenger, rank, ranks, c.root, trial.send(), trial.receive(), bytes);
      case Collective::kReduce:
        return RingReduce(messenger, rank, ranks, c.root, reduction, trial.send(), trial.receive(),
                          c.count);
      case Collective::kBarrier:
        return RingBarrier(messenger, rank, ranks);
    }
    return absl::InternalError("no such collective");
  };
  const absl::Status status = run();
  return status.ok() ? trial.Check() : absl::StrCat(ToString(c), ": ", status.message());
}

void RunCases(int ranks, const std::vector<CollectiveCase>& cases, unsigned seed) {
  SimulatedWorld world(ranks);
  const std::vector<std::string> wrong = RunRanks(ranks, [&](int rank) -> std::string {
    SimulatedMessenger messenger(world, rank, seed + static_cast<unsigned>(rank));
    for (size_t i = 0; i < cases.size(); ++i) {
      std::string error = RunCase(messenger, rank, ranks, cases[i], i);
      if (!error.empty()) return error;
    }
    return "";
  });
  EXPECT_EQ(wrong, std::vector<std::string>(static_cast<size_t>(ranks))) << ranks << " ranks";
  EXPECT_TRUE(world.Empty());
}

class RingSimulationTest : public ::testing::TestWithParam<int> {};

// 32768 values are the least segment of a part, 8192 that of a train; 8 and 16 segments, and a
// further round, begin at multiples of them.
TEST_P(RingSimulationTest, EveryCollectiveAndSizeInAndOutOfPlaceFromEveryRoot) {
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

TEST_P(RingSimulationTest, EveryType) {
  const int ranks = GetParam();
  std::vector<CollectiveCase> cases;
  for (int type = rhInt8; type <= rhUint16; ++type) {
    for (const Collective collective : kCollectives) {
      const auto t = static_cast<rhDataType_t>(type);
      cases.push_back({collective, t, rhAvg, 1001, ranks / 2, true});
      cases.push_back({collective, t, rhProd, 140000, ranks - 1, false});
    }
  }
  RunCases(ranks, cases, 3);
}

class LargeRingSimulationTest : public ::testing::TestWithParam<int> {};

TEST_P(LargeRingSimulationTest, ManySegments) {
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

TEST_P(RingSimulationTest, AnySuccession) {
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

INSTANTIATE_TEST_SUITE_P(Ranks, RingSimulationTest, ::testing::Values(1, 2, 3, 4, 5, 8));
INSTANTIATE_TEST_SUITE_P(Ranks, LargeRingSimulationTest, ::testing::Values(1, 2, 3, 4));

TEST(TimetableTest, NeighboursAgreeAndEverythingComesAround) {
  for (const size_t ranks : {2, 3, 5, 8}) {
    for (const size_t count : {1, 7, 40, 1000003}) {
      for (const size_t largest : {size_t{131072}, size_t{262144}, SIZE_MAX}) {
        const auto timetable = [&](size_t rank) {
          return Timetable({.ranks = ranks,
                            .first = rank,
                            .steps = ranks - 1,
                            .count = count,
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
