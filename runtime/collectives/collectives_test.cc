// SPDX-License-Identifier: Apache-2.0
//
// Every collective over messages, in a simulated world: many ranks, many schedules.

#include "runtime/testing/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/timetable.h"
#include "runtime/collectives/ways.h"
#include "runtime/testing/operations.h"
#include "runtime/testing/ranks.h"
#include "runtime/testing/simulated_messenger.h"

namespace railhead::collectives {
namespace {

using railhead::testing::AsOperation;
using railhead::testing::Collective;
using railhead::testing::CollectiveCase;
using railhead::testing::HasRoot;
using railhead::testing::kCollectives;
using railhead::testing::RunRanks;
using railhead::testing::SimulatedMessenger;
using railhead::testing::SimulatedWorld;
using railhead::testing::Trial;

// Calls an algorithm as the communicator does.
absl::Status Play(const Way& way, Messenger& messenger, int rank, int ranks,
                  const CollectiveCase& c, Trial& trial) {
  Operation operation = AsOperation(c, ranks, trial);
  std::byte token{1};
  if (c.collective == Collective::kBarrier) operation = BarrierAsAllReduce(operation, &token);
  std::vector<std::byte> copy;
  if (c.collective == Collective::kAllToAll) {
    // They have none in place: a copy is what is sent.
    copy.assign(operation.send, operation.send + operation.send_parts.total());
    operation.send = copy.data();
  }
  return way.run(messenger, rank, operation);
}

// All that send messages among all ranks.
std::vector<Way> WaysOf(Collective collective) {
  std::vector<Way> ways;
  for (const Way& way : Ways()) {
    if (way.collective == collective && way.seconds != nullptr) ways.push_back(way);
  }
  return ways;
}

// All cases by the first way of each collective, then by the second, ...
void RunCases(int ranks, const std::vector<CollectiveCase>& cases, unsigned seed) {
  std::map<Collective, std::vector<Way>> all;
  size_t most = 0;
  for (const CollectiveCase& c : cases) {
    most = std::max(most, (all[c.collective] = WaysOf(c.collective)).size());
  }
  ASSERT_GT(most, 0U);
  for (size_t number = 0; number < most; ++number) {
    SimulatedWorld world(ranks);
    const std::vector<std::string> wrong = RunRanks(ranks, [&](int rank) -> std::string {
      SimulatedMessenger messenger(world, rank, seed + static_cast<unsigned>(rank));
      for (size_t i = 0; i < cases.size(); ++i) {
        const CollectiveCase& c = cases[i];
        const std::vector<Way>& ways = all.at(c.collective);
        if (number >= ways.size()) continue;
        const Way& way = ways[number];
        Trial trial(c, rank, ranks, i);
        const absl::Status status = Play(way, messenger, rank, ranks, c, trial);
        const std::string error =
            status.ok() ? trial.Check() : absl::StrCat(ToString(c), ": ", status.message());
        if (!error.empty()) return absl::StrCat(Name(way.algorithm), ": ", error);
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

// Where trees, exchanges and circles have odd shapes.
void RunOddShapes(int ranks) {
  std::vector<CollectiveCase> cases;
  for (const Collective collective : kCollectives) {
    for (const size_t count : {0, 1, 1003}) {
      cases.push_back({collective, rhInt32, rhAvg, count, ranks / 3, ranks % 2 == 0});
    }
  }
  // Of parts that differ, and of those that are none.
  for (const Collective collective : {Collective::kAllGather, Collective::kReduceScatter}) {
    for (const size_t count : {1, 2, 37}) {
      for (const bool in_place : {false, true}) {
        cases.push_back({collective, rhUint16, rhMax, count, ranks % 3, in_place, false, true});
      }
    }
  }
  RunCases(ranks, cases, 5);
}

TEST(WorldsTest, OfEverySize) {
  for (int ranks = 1; ranks <= 33; ++ranks) RunOddShapes(ranks);
}

TEST(WorldsTest, OfManyRanks) {
  for (const int ranks : {64, 65, 100}) RunOddShapes(ranks);
}

// What a caller may pass besides: parts that differ and follow each other, and parts in another
// order than that of ranks.
TEST(WorldsTest, PartsFollowEachOtherOrStandAnywhere) {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    const auto count = static_cast<size_t>(ranks);
    for (const bool backwards : {false, true}) {
      std::vector<size_t> sizes(count);
      std::vector<size_t> begins(count);
      size_t end = 0;
      for (size_t i = 0; i < count; ++i) {
        const size_t r = backwards ? count - 1 - i : i;
        sizes[r] = (r + 2) % 4;
        begins[r] = end;
        end += sizes[r];
      }
      const Parts parts(sizes, begins, 1);
      const auto value = [](size_t rank, size_t i) { return static_cast<uint8_t>(7 * rank + i); };
      for (const Collective collective : {Collective::kAllGather, Collective::kReduceScatter}) {
        for (const Way& way : WaysOf(collective)) {
          SimulatedWorld world(ranks);
          const auto wrong = RunRanks(ranks, [&](int rank) -> std::string {
            SimulatedMessenger messenger(world, rank, static_cast<unsigned>(rank));
            const auto self = static_cast<size_t>(rank);
            std::vector<uint8_t> all(end);
            std::vector<uint8_t> own(sizes[self]);
            auto* const all_bytes = reinterpret_cast<std::byte*>(all.data());
            auto* const own_bytes = reinterpret_cast<std::byte*>(own.data());
            if (collective == Collective::kAllGather) {
              for (size_t i = 0; i < own.size(); ++i) own[i] = value(self, i);
              const absl::Status done = way.run(messenger, rank,
                                                {.collective = collective,
                                                 .ranks = ranks,
                                                 .send = own_bytes,
                                                 .receive = all_bytes,
                                                 .receive_parts = parts});
              if (!done.ok()) return std::string(done.message());
              for (size_t r = 0; r < count; ++r) {
                for (size_t i = 0; i < sizes[r]; ++i) {
                  if (all[begins[r] + i] != value(r, i)) return "wrong all-gather";
                }
              }
              return "";
            }
            for (size_t i = 0; i < end; ++i) all[i] = value(self, i);
            const absl::Status done = way.run(messenger, rank,
                                              {.collective = collective,
                                               .ranks = ranks,
                                               .reduction = {rhUint8, rhSum, ranks, {}},
                                               .send = all_bytes,
                                               .receive = own_bytes,
                                               .send_parts = parts});
            if (!done.ok()) return std::string(done.message());
            for (size_t i = 0; i < own.size(); ++i) {
              uint8_t sum = 0;
              for (size_t r = 0; r < count; ++r) {
                sum = static_cast<uint8_t>(sum + value(r, begins[self] + i));
              }
              if (own[i] != sum) return "wrong reduce-scatter";
            }
            return "";
          });
          EXPECT_EQ(wrong, std::vector<std::string>(count))
              << Name(way.algorithm) << " of " << ranks << " ranks";
        }
      }
    }
  }
}

// Messages of the busiest rank, which no step is without.
size_t MostMessages(const Way& way, int ranks) {
  const CollectiveCase c = {way.collective, rhUint8, rhSum, 3, 0, false};
  SimulatedWorld world(ranks);
  const std::vector<size_t> sent = RunRanks(ranks, [&](int rank) {
    SimulatedMessenger messenger(world, rank, static_cast<unsigned>(rank));
    Trial trial(c, rank, ranks, 1);
    EXPECT_TRUE(Play(way, messenger, rank, ranks, c, trial).ok());
    EXPECT_EQ(trial.Check(), "");
    return messenger.sent();
  });
  return *std::max_element(sent.begin(), sent.end());
}

TEST(StepsTest, AreAsManyAsTheAlgorithmPromises) {
  for (const int ranks : {2, 3, 7, 16, 33, 64, 100}) {
    const auto log = static_cast<size_t>(std::bit_width(static_cast<unsigned>(ranks) - 1));
    const auto most = [&](Collective collective, Algorithm algorithm) {
      return MostMessages(*FindWay(collective, algorithm), ranks);
    };
    // A step around the circle is two messages at times.
    EXPECT_LE(most(Collective::kAllGather, Algorithm::kBruck), 2 * log) << ranks;
    EXPECT_LE(most(Collective::kReduceScatter, Algorithm::kRecursiveHalving), 2 * log) << ranks;
    EXPECT_LE(most(Collective::kBroadcast, Algorithm::kScatterAllGather), 3 * log) << ranks;
    EXPECT_LE(most(Collective::kAllToAll, Algorithm::kBruck), log) << ranks;
    EXPECT_LE(most(Collective::kGather, Algorithm::kBinomial), log) << ranks;
    EXPECT_LE(most(Collective::kScatter, Algorithm::kBinomial), log) << ranks;
    EXPECT_EQ(most(Collective::kAllGather, Algorithm::kRing), static_cast<size_t>(ranks) - 1);
    EXPECT_EQ(most(Collective::kReduceScatter, Algorithm::kRing), static_cast<size_t>(ranks) - 1);
  }
}

// Who broadcasts has all of it, and receives nothing that would be written where others still read.
TEST(StepsTest, TheRootOfABroadcastReceivesNothing) {
  const CollectiveCase c = {Collective::kBroadcast, rhUint8, rhSum, 1000, 0, true};
  for (const Way& way : WaysOf(Collective::kBroadcast)) {
    for (int ranks = 2; ranks <= 17; ++ranks) {
      SimulatedWorld world(ranks);
      RunRanks(ranks, [&](int rank) {
        SimulatedMessenger messenger(world, rank, 1);
        Trial trial(c, rank, ranks, 1);
        EXPECT_TRUE(Play(way, messenger, rank, ranks, c, trial).ok());
        EXPECT_EQ(messenger.wanted() == 0, rank == c.root) << Name(way.algorithm);
        return 0;
      });
    }
  }
}

// Sums that are rounded otherwise in another order.
TEST(BitsTest, AreTheSameInEveryRunAndOfAllReducesOnAllRanks) {
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kReduceScatter, Collective::kReduce}) {
    for (const Way& way : WaysOf(collective)) {
      for (const int ranks : {3, 6, 7, 8, 13}) {
        CollectiveCase c = {collective, rhBfloat16, rhSum, 1001, 1, false};
        c.values = railhead::testing::Values::kRounded;
        std::vector<std::vector<std::string>> runs;
        for (const unsigned seed : {1U, 100U}) {
          SimulatedWorld world(ranks);
          runs.push_back(RunRanks(ranks, [&](int rank) {
            SimulatedMessenger messenger(world, rank, seed + static_cast<unsigned>(rank));
            Trial trial(c, rank, ranks, 1);
            EXPECT_TRUE(Play(way, messenger, rank, ranks, c, trial).ok());
            EXPECT_EQ(trial.Check(), "");
            return std::string(trial.result());
          }));
        }
        EXPECT_EQ(runs[0], runs[1]) << Name(way.algorithm) << " of " << ranks << " ranks";
        if (collective != Collective::kAllReduce) continue;
        EXPECT_EQ(runs[0], std::vector<std::string>(static_cast<size_t>(ranks), runs[0][0]))
            << Name(way.algorithm) << " of " << ranks << " ranks";
      }
    }
  }
}

// The table has each name once, so that a pin says one thing.
TEST(WaysTest, EachIsListedOnceAndComesDownToOneOfItsCollective) {
  std::set<std::pair<Collective, Algorithm>> seen;
  for (const Way& way : Ways()) {
    EXPECT_TRUE(seen.emplace(way.collective, way.algorithm).second)
        << Name(way.collective) << "=" << Name(way.algorithm);
    EXPECT_EQ(way.seconds == nullptr, way.run == nullptr);
    const Way* const same = FindWay(way.collective, way.between_two);
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(same->between_two, same->algorithm);
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
