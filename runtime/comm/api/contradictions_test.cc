// SPDX-License-Identifier: Apache-2.0
//
// Ranks that make different calls, in memory, over messages and in places of any sizes: every rank
// must get an error that names both sides, long before a timeout, and no rank may return a wrong
// result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/hierarchy/places_for_test.h"
#include "runtime/testing/call.h"
#include "runtime/testing/collectives.h"
#include "runtime/testing/conformance.h"

namespace railhead::comm {
namespace {

using testing::Collective;
using testing::CollectiveCase;
using testing::Trial;

// Calls of each rank, in order.
struct Plan {
  std::vector<std::vector<CollectiveCase>> calls;  // by rank
  std::string text;
};

class Planner {
 public:
  Planner(int ranks, unsigned seed) : ranks_(ranks), random_(seed) {}

  Plan Make() {
    const CollectiveCase right = AnyCase();
    const CollectiveCase other = Contradict(right);
    // At least one rank on either side.
    std::vector<bool> odd;
    do {
      odd.clear();
      for (int rank = 0; rank < ranks_; ++rank) odd.push_back(Below(2) == 1);
    } while (Count(odd) == 0 || Count(odd) == ranks_);

    Plan plan;
    plan.text = absl::StrCat(ToString(right), " against ", ToString(other), " of");
    for (int rank = 0; rank < ranks_; ++rank) {
      if (odd[static_cast<size_t>(rank)]) absl::StrAppend(&plan.text, " ", rank);
    }
    const std::vector<CollectiveCase> before = {AnyCase(), AnyCase()};
    // The same call again, on all ranks: messages of the failed call must not be used for it.
    const std::vector<CollectiveCase> after = {right, right, AnyCase(), Barrier()};
    for (int rank = 0; rank < ranks_; ++rank) {
      std::vector<CollectiveCase>& calls = plan.calls.emplace_back(before);
      calls.push_back(odd[static_cast<size_t>(rank)] ? other : right);
      calls.insert(calls.end(), after.begin(), after.end());
    }
    return plan;
  }

 private:
  static int Count(const std::vector<bool>& set) {
    int count = 0;
    for (const bool one : set) count += one ? 1 : 0;
    return count;
  }
  static CollectiveCase Barrier() { return {Collective::kBarrier, rhInt8, rhSum, 0, 0, false}; }

  size_t Below(size_t limit) { return random_() % limit; }
  int AnyRank() { return static_cast<int>(Below(static_cast<size_t>(ranks_))); }

  CollectiveCase AnyCase() {
    CollectiveCase c = {testing::kCollectives[Below(testing::kCollectives.size())],
                        rhInt32,
                        rhSum,
                        1 + Below(size_t{1} << Below(17)),
                        AnyRank(),
                        false};
    c.uneven = testing::HasUneven(c.collective) && Below(2) == 0;
    if (c.collective == Collective::kBarrier) c.count = 0;
    return c;
  }

  // Returns a different call, with as few differences as possible.
  CollectiveCase Contradict(const CollectiveCase& right) {
    while (true) {
      CollectiveCase c = right;
      switch (Below(5)) {
        case 0:
          c.root = AnyRank();
          // Of parts that differ it says whose is which, be their sum what it was.
          if (!testing::HasRoot(c.collective) && (!c.uneven || ranks_ % 3 != 0)) continue;
          if (c.root % (c.uneven ? 3 : ranks_) == right.root % (c.uneven ? 3 : ranks_)) continue;
          return c;
        case 1:
          if (c.collective == Collective::kBarrier) continue;
          // So that every part differs, if parts do.
          c.count = c.uneven || Below(2) == 0 ? 2 * c.count + 2 + Below(100) : Below(c.count);
          return c;
        case 2:
          if (!testing::Reduces(c.collective)) continue;
          c.op = rhMax;
          return c;
        case 3:
          if (!testing::Reduces(c.collective)) continue;
          c.type = rhUint32;
          return c;
        default:
          c = AnyCase();
          if (c.collective == right.collective) continue;
          return c;
      }
    }
  }

  const int ranks_;
  std::mt19937 random_;
};

// Returns "" or the error in a rank's results.
std::string PlayUntilTold(Communicator& made, const std::vector<CollectiveCase>& calls, int rank,
                          int ranks) {
  rhComm comm;
  comm.communicator.reset(&made);
  std::string error;
  // An error that arrives while another rank still measures the network would abort its
  // measurement.
  if (rhBarrier(&comm, nullptr) != rhSuccess) error = rhGetLastError(&comm);
  size_t i = 0;
  for (; i < calls.size() && error.empty(); ++i) {
    Trial trial(calls[i], rank, ranks, i);
    error = testing::Play(&comm, trial);
  }
  comm.communicator.release();
  const bool named = absl::StrContains(error, "all ranks must call the same") ||
                     absl::StrContains(error, "pass the same count on all ranks");
  if (named) return "";
  return absl::StrCat("rank ", rank, ", call ", i, ": ", error.empty() ? "told nothing" : error);
}

class ContradictionsTest : public ::testing::TestWithParam<std::vector<int>> {};

TEST_P(ContradictionsTest, AreToldToAllRanksBeforeAnyTimeout) {
  World world = World::Of(GetParam());
  // No test waits that long: the text of a timeout would show it.
  world.timeout = absl::Seconds(30);
  world.algorithms = "";
  for (unsigned seed = 0; seed < 12; ++seed) {
    const Plan plan = Planner(world.ranks(), seed).Make();
    for (const std::vector<CollectiveCase>& calls : plan.calls) {
      // Once, before ranks ask for them at the same time.
      for (const CollectiveCase& c : calls) {
        testing::ValueTable::Of(OperationOf(c, world.ranks()));
      }
    }
    EXPECT_EQ(world.Run([&](Communicator& comm, int rank) {
      return PlayUntilTold(comm, plan.calls[static_cast<size_t>(rank)], rank, world.ranks());
    }),
              world.All(""))
        << "seed " << seed << ": " << plan.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, ContradictionsTest,
                         ::testing::Values(std::vector<int>{2}, std::vector<int>{3},
                                           std::vector<int>{6}, std::vector<int>{1, 1},
                                           std::vector<int>{1, 1, 1},
                                           std::vector<int>{1, 1, 1, 1, 1}, std::vector<int>{2, 1},
                                           std::vector<int>{2, 2}, std::vector<int>{3, 1, 2}),
                         [](const auto& sizes) {
                           return absl::StrCat("places_", absl::StrJoin(sizes.param, "_"));
                         });

}  // namespace
}  // namespace railhead::comm
