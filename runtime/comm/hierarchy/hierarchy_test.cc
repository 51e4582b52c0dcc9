// SPDX-License-Identifier: Apache-2.0
//
// Ranks in several places, which the tests choose, on this machine: what one place shares is
// memory, and between places there is TCP.
#include "runtime/comm/hierarchy/hierarchy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/hierarchy/places_for_test.h"
#include "runtime/comm/setup/neighbours.h"
#include "runtime/shm/allocation.h"
#include "runtime/testing/collectives.h"
#include "runtime/testing/operations.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead::comm {
namespace {

using ::testing::AllOf;
using testing::AllReduceOf;
using testing::AsOperation;
using testing::Collective;
using testing::CollectiveCase;
using ::testing::Each;
using testing::HasRoot;
using ::testing::HasSubstr;
using testing::Process;
using testing::Reduces;
using testing::Trial;

constexpr std::array<Collective, 5> kInPlaces = {Collective::kAllReduce, Collective::kReduceScatter,
                                                 Collective::kAllGather, Collective::kBroadcast,
                                                 Collective::kBarrier};
void RunCases(const World& world, const std::vector<CollectiveCase>& cases) {
  EXPECT_EQ(world.Run([&](Communicator& comm, int rank) -> std::string {
    for (size_t i = 0; i < cases.size(); ++i) {
      Trial trial(cases[i], rank, world.ranks(), i);
      if (absl::Status done = comm.Run(AsOperation(cases[i], world.ranks(), trial)); !done.ok()) {
        return absl::StrCat(ToString(cases[i]), ": ", done.message());
      }
      std::string error = trial.Check();
      if (!error.empty()) return absl::StrCat("case ", i, ": ", error);
    }
    return "right";
  }),
            world.All("right"))
      << world.ToString();
}

World TwoPlacesOfTwo() { return World::Of({2, 2}); }

// Also with a rank that is alone, ranks that lead nothing, and places whose ranks do not follow
// each other.
std::vector<World> Worlds() {
  std::vector<World> worlds;
  unsigned seed = 0;
  for (const std::vector<int>& sizes : std::vector<std::vector<int>>{
           {2, 2}, {3, 3}, {2, 2, 2}, {4, 4}, {1, 2}, {3, 1, 2}, {2, 3, 4}, {5, 1, 1}, {4, 4, 3}}) {
    worlds.push_back(World::Of(sizes));
    worlds.push_back(World::Shuffled(sizes, ++seed));
  }
  return worlds;
}

// In bytes: fewer than there are ranks, and around where one more rank becomes a leader.
TEST(HierarchyTest, EverySizeInAndOutOfPlaceFromEveryRoot) {
  for (const World& world : Worlds()) {
    std::vector<CollectiveCase> cases;
    for (const size_t count : {0, 1, 2, 5, 63, 8191, 8192, 16383, 16384, 24577, 40000, 131073}) {
      for (const Collective collective : kInPlaces) {
        for (int root = 0; root < (HasRoot(collective) ? world.ranks() : 1); ++root) {
          cases.push_back({collective, rhUint8, rhSum, count, root, false});
          cases.push_back({collective, rhUint8, rhSum, count, root, true});
        }
      }
    }
    RunCases(world, cases);
  }
}

TEST(HierarchyTest, EveryTypeAndOperator) {
  std::vector<CollectiveCase> cases;
  for (int type = rhInt8; type <= rhUint16; ++type) {
    for (int op = rhSum; op <= rhBxor; ++op) {
      const auto t = static_cast<rhDataType_t>(type);
      const auto o = static_cast<rhRedOp_t>(op);
      for (const Collective collective : kInPlaces) {
        if (Reduces(collective) ? !reduce::CanReduce(t, o) : op != rhSum) continue;
        cases.push_back({collective, t, o, 1, 3, true});
        cases.push_back({collective, t, o, 20003, 2, false});
      }
    }
  }
  RunCases(TwoPlacesOfTwo(), cases);
  RunCases(World::Of({1, 3}), cases);
}

// Around a piece of four mebibytes for each rank of a place.
TEST(HierarchyTest, LargeOnes) {
  std::vector<CollectiveCase> cases;
  for (const Collective collective : {Collective::kAllReduce, Collective::kBroadcast}) {
    for (const size_t count : {(1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 21) + 3}) {
      cases.push_back({collective, rhInt64, rhMax, count, 3, count % 2 == 0});
    }
  }
  RunCases(TwoPlacesOfTwo(), cases);
  RunCases(World::Of({1, 3}), cases);
}

TEST(HierarchyTest, EveryAlgorithmBetweenPlaces) {
  for (const std::vector<int>& sizes : {std::vector<int>{2, 2}, {2, 2, 2}, {1, 3, 2}}) {
    for (const char* algorithm :
         {"ring", "recursive_doubling", "halving_doubling", "double_tree", "direct"}) {
      World world = World::Of(sizes);
      world.algorithms = absl::StrCat("all_reduce=hierarchical,all_reduce=", algorithm);
      std::vector<CollectiveCase> cases;
      for (const size_t count : {1, 4097, 70000}) {
        cases.push_back({Collective::kAllReduce, rhFloat32, rhAvg, count, 0, false});
        cases.push_back({Collective::kAllReduce, rhBfloat16, rhSum, count, 0, true});
      }
      RunCases(world, cases);
      const auto texts =
          world.Run([](Communicator& comm, int) { return *comm.Explain("all_reduce", 1 << 20); });
      EXPECT_THAT(texts, Each(HasSubstr(absl::StrCat("hierarchical (", algorithm, "), set by"))));
    }
  }
}

// What a place shares is worked on where it lies.
TEST(HierarchyTest, MemoryThatRanksGiveEachOther) {
  for (const World& world : Worlds()) {
    EXPECT_EQ(world.Run([&](Communicator& comm, int rank) -> std::string {
      constexpr size_t kMost = 300000;
      std::byte* const memory = *shm::Allocate(2 * kMost * sizeof(uint32_t));
      const absl::StatusOr<size_t> window =
          comm.memory().OpenWindow(memory, 2 * kMost * sizeof(uint32_t));
      if (!window.ok()) return std::string(window.status().message());
      auto* const values = reinterpret_cast<uint32_t*>(memory);
      for (const size_t count : {size_t{100}, size_t{5000}, kMost}) {
        for (uint32_t* const result : {values + kMost, values}) {
          const auto factor = static_cast<uint32_t>(rank + 1);
          for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint32_t>(i) * factor;
          const absl::Status done = comm.Run(AllReduceOf(
              world.ranks(), rhUint32, rhSum, memory, reinterpret_cast<std::byte*>(result), count));
          if (!done.ok()) return std::string(done.message());
          const auto factors = static_cast<uint32_t>(world.ranks() * (world.ranks() + 1) / 2);
          for (size_t i = 0; i < count; ++i) {
            if (result[i] != static_cast<uint32_t>(i) * factors)
              return absl::StrCat("wrong at ", i);
          }
        }
      }
      comm.memory().CloseWindow(*window);
      return std::string(shm::Free(memory).message());
    }),
              world.All(""));
  }
}

// Also with collectives of other kinds in between.
TEST(HierarchyTest, AnySuccession) {
  for (World world : Worlds()) {
    std::mt19937 random(static_cast<unsigned>(world.ranks()));
    world.algorithms = "all_reduce<=64K=hierarchical,broadcast<=1K=binomial,broadcast=hierarchical";
    std::vector<CollectiveCase> cases;
    for (int i = 0; i < 200; ++i) {
      const size_t largest = size_t{1} << (random() % 18);
      cases.push_back({kInPlaces[random() % kInPlaces.size()],
                       random() % 2 == 0 ? rhInt32 : rhFloat16, rhAvg, random() % largest,
                       static_cast<int>(random() % static_cast<unsigned>(world.ranks())),
                       random() % 2 == 0});
    }
    RunCases(world, cases);
  }
}

TEST(HierarchyTest, PartsThatDiffer) {
  for (const World& world : Worlds()) {
    const auto ranks = static_cast<size_t>(world.ranks());
    std::vector<size_t> sizes;
    std::vector<size_t> begins;
    size_t total = 0;
    for (size_t rank = 0; rank < ranks; ++rank) {
      begins.push_back(total + 5);
      sizes.push_back(rank == 1 ? 140001 : 3 * rank);
      total = begins.back() + sizes.back();
    }
    const auto value = [](size_t of, size_t i) { return static_cast<int>(of * 1000003 + i); };
    EXPECT_EQ(world.Run([&](Communicator& comm, int rank) -> std::string {
      const auto self = static_cast<size_t>(rank);
      std::vector<int> expected(total, -1);
      for (size_t r = 0; r < ranks; ++r) {
        for (size_t i = 0; i < sizes[r]; ++i) expected[begins[r] + i] = value(r, i);
      }
      std::vector<int> all(total, -1);
      int* const own = all.data() + begins[self];
      for (size_t i = 0; i < sizes[self]; ++i) own[i] = value(self, i);
      absl::Status done = comm.Run({.collective = Collective::kAllGather,
                                    .ranks = world.ranks(),
                                    .send = reinterpret_cast<std::byte*>(own),
                                    .receive = reinterpret_cast<std::byte*>(all.data()),
                                    .receive_parts = Parts(sizes, begins, sizeof(int))});
      if (!done.ok()) return std::string(done.message());
      if (all != expected) return "wrong all-gather";
      std::vector<int> sum(sizes[self]);
      done = comm.Run({.collective = Collective::kReduceScatter,
                       .ranks = world.ranks(),
                       .reduction = {rhInt32, rhSum, world.ranks(), {}},
                       .send = reinterpret_cast<std::byte*>(all.data()),
                       .receive = reinterpret_cast<std::byte*>(sum.data()),
                       .send_parts = Parts(sizes, begins, 1)});
      if (!done.ok()) return std::string(done.message());
      for (size_t i = 0; i < sum.size(); ++i) {
        if (sum[i] != static_cast<int>(ranks) * value(self, i)) return "wrong reduce-scatter";
      }
      return all == expected ? "right" : "the input was written to";
    }),
              world.All("right"));
  }
}

// Values whose sums depend on their order.
TEST(HierarchyTest, AllRanksGetTheSameBits) {
  for (const World& world : Worlds()) {
    for (const auto type : {rhFloat32, rhFloat16, rhBfloat16, rhFloat8e5m2}) {
      const std::vector<std::string> results =
          world.Run([&](Communicator& comm, int rank) -> std::string {
            std::mt19937 random(static_cast<unsigned>(rank));
            std::vector<unsigned> words(20001);
            std::generate(words.begin(), words.end(), std::ref(random));
            auto* const data = reinterpret_cast<std::byte*>(words.data());
            const size_t bytes = words.size() * sizeof(words[0]);
            absl::Status done = comm.Run(AllReduceOf(comm.world_size(), type, rhSum, data, data,
                                                     bytes / reduce::SizeOf(type)));
            if (!done.ok()) return std::string(done.message());
            return {reinterpret_cast<const char*>(data), bytes};
          });
      for (const std::string& result : results) {
        // Not the bits, which nobody can read; an error is shorter.
        EXPECT_EQ(result.size(), 20001 * sizeof(unsigned)) << (result.size() < 2000 ? result : "");
        EXPECT_TRUE(result == results[0]);
      }
    }
  }
}

// The bytes that leave a rank: of a ring's, as many as there are ranks in a place send together.
TEST(HierarchyTest, RailsCarryALocalRanksPartAlone) {
  constexpr size_t kBytes = size_t{1} << 20U;
  const World world = World::Of({4, 4});
  const auto sent = [](Communicator& comm) { return comm.Rails().front().transmit_bytes; };
  EXPECT_EQ(world.Run([&](Communicator& comm, int) -> std::string {
    std::vector<std::byte> values(kBytes);
    const uint64_t before = sent(comm);
    for (int i = 0; i < 10; ++i) {
      absl::Status done = comm.Run(
          AllReduceOf(comm.world_size(), rhUint8, rhSum, values.data(), values.data(), kBytes));
      if (!done.ok()) return std::string(done.message());
    }
    const double share = static_cast<double>(sent(comm) - before) / 10 / kBytes;
    // Headers and acknowledgements are a little more.
    return share >= 0.25 && share < 0.27 ? "right" : absl::StrCat("sent ", share);
  }),
            world.All("right"));
}

// The model knows that few ranks' memory is faster than the loopback, and says so.
TEST(HierarchyTest, IsAmongTheChoicesOfTheModel) {
  World world = TwoPlacesOfTwo();
  world.algorithms = "";
  const auto texts =
      world.Run([](Communicator& comm, int) { return *comm.Explain("all_reduce", 1 << 20); });
  EXPECT_THAT(
      texts, Each(AllOf(HasSubstr("2 places of 2 rank(s) or more"), HasSubstr(" hierarchical ("))));
  EXPECT_THAT(texts, Each(texts[0])) << "alike on all ranks";
}

// So often in a few classes of sizes that the fastest ways are learnt meanwhile: flat ones take
// turns with hierarchical ones.
TEST(HierarchyTest, WhileAlgorithmsAreLearnt) {
  for (World world : {World::Of({2, 2}), World::Of({3, 3}), World::Of({1, 3})}) {
    world.algorithms = "";
    std::mt19937 random(static_cast<unsigned>(world.ranks()));
    std::vector<CollectiveCase> cases;
    for (const Collective collective : kInPlaces) {
      for (const size_t largest : {8, 10000}) {
        for (int i = 0; i < 30; ++i) {
          cases.push_back({collective, rhInt32, rhSum, largest - random() % (largest / 2),
                           static_cast<int>(random() % static_cast<unsigned>(world.ranks())),
                           random() % 2 == 0});
        }
      }
    }
    std::shuffle(cases.begin(), cases.end(), random);
    RunCases(world, cases);
  }
}

TEST(HierarchyTest, AllRanksLearnTheSame) {
  int learnt = 0;
  for (World world : Worlds()) {
    world.algorithms = "";
    const auto texts = world.Run([](Communicator& comm, int) -> std::string {
      std::vector<std::byte> values(1000);
      for (int call = 0; call < 60; ++call) {
        absl::Status done = comm.Run(AllReduceOf(comm.world_size(), rhUint8, rhSum, values.data(),
                                                 values.data(), values.size()));
        if (!done.ok()) return std::string(done.message());
      }
      return *comm.Explain("all_reduce", values.size());
    });
    EXPECT_THAT(texts, Each(texts[0]));
    // Unless one way was far better than all others, by what the model's measurement has met.
    if (texts[0].find("learnt: ") == std::string::npos) continue;
    EXPECT_THAT(texts[0], HasSubstr(" us measured"));
    ++learnt;
  }
  EXPECT_GT(learnt, 0);
}

TEST(HierarchyTest, ASplitCommunicatorHasPlacesToo) {
  const World world = World::Of({2, 2, 2});
  EXPECT_EQ(world.Run([&](Communicator& comm, int rank) -> std::string {
    const bool all = rank < 4;
    auto part = comm.family().Split(all ? 0 : 1, rank);
    if (!part.ok()) return std::string(part.status().message());
    int value = 1;
    auto* const bytes = reinterpret_cast<std::byte*>(&value);
    absl::Status done =
        (*part)->Run(AllReduceOf((*part)->world_size(), rhInt32, rhSum, bytes, bytes, 1));
    if (!done.ok()) return std::string(done.message());
    if (value != (all ? 4 : 2)) return "wrong sum";
    const std::string text = *(*part)->Explain("all_reduce", 8);
    const char* wanted = all ? ": hierarchical (" : "all ranks share memory";
    return text.find(wanted) != std::string::npos ? "right" : text;
  }),
            world.All("right"));
}

// More ranks than are connected from the start, as many in a place as is no power of two, and one
// rank less in the last place. Columns' links are made when they are used.
TEST(HierarchyTest, BeyondTheRanksThatAreConnectedFromTheStart) {
  std::vector<int> sizes(22, 3);
  sizes.back() = 2;
  const World world = World::Of(sizes);
  ASSERT_GT(world.ranks(), kAllConnected);
  std::vector<CollectiveCase> cases;
  for (const size_t count : {1, 20000}) {
    for (const Collective collective : kInPlaces) {
      cases.push_back({collective, rhInt32, rhSum, count, 64, false});
    }
  }
  RunCases(world, cases);
}

TEST(HierarchyTest, AKilledRankIsNamedByAllOthers) {
  for (const Collective collective : kInPlaces) {
    for (const int victim : {0, 1, 3}) {
      World world = TwoPlacesOfTwo();
      world.timeout = absl::Seconds(20);
      Meeting meeting;
      std::vector<Process> processes;
      for (int rank = 0; rank < world.ranks(); ++rank) {
        processes.push_back(Process::Fork({}, [&]() -> std::string {
          auto comm = world.Join(rank, meeting);
          if (!comm.ok()) return std::string(comm.status().message());
          const CollectiveCase c = {collective, rhInt32, rhSum, 50000, 1, false};
          Trial trial(c, rank, world.ranks(), 1);
          for (int i = 0; i < 1000000; ++i) {
            if (rank == victim && i == 5) ::raise(SIGKILL);
            if (absl::Status done = (*comm)->Run(AsOperation(c, world.ranks(), trial));
                !done.ok()) {
              return std::string(done.message());
            }
          }
          return "nobody died";
        }));
      }
      for (int rank = 0; rank < world.ranks(); ++rank) {
        const std::string output =
            processes[static_cast<size_t>(rank)].Wait(MonotonicNow() + absl::Seconds(40)).output;
        if (rank == victim) continue;
        EXPECT_THAT(output, AllOf(HasSubstr(absl::StrCat("rank ", victim, " (pod p", victim, ")")),
                                  HasSubstr(absl::StrCat(Name(collective), " number "))));
      }
    }
  }
}

// Also where what they call waits in memory on one rank, and for messages on the other.
TEST(HierarchyTest, RanksThatContradictEachOtherAreNamed) {
  const CollectiveCase all = {Collective::kAllReduce, rhInt32, rhSum, 1000, 0, false};
  const std::vector<std::pair<CollectiveCase, std::string>> others = {
      {{Collective::kAllReduce, rhInt32, rhSum, 1001, 0, false},
       "all_reduce of 1001 values of type 2 with op 0"},
      {{Collective::kAllReduce, rhInt32, rhSum, 100000, 0, false}, "all_reduce of 100000 values"},
      {{Collective::kAllGather, rhInt32, rhSum, 1000, 0, false}, "all_gather of 16000 bytes"},
      {{Collective::kBroadcast, rhInt32, rhSum, 1000, 2, false}, "broadcast of 4000 bytes, root 2"},
      {{Collective::kBarrier, rhInt32, rhSum, 0, 0, false}, "barrier"}};
  World world = TwoPlacesOfTwo();
  world.algorithms = "all_reduce<=64K=hierarchical,all_reduce=ring,broadcast=binomial";
  for (const auto& [other, text] : others) {
    for (int odd = 0; odd < world.ranks(); ++odd) {
      const std::vector<std::string> outputs =
          world.Run([&](Communicator& comm, int rank) -> std::string {
            for (int i = 0; i < 1000; ++i) {
              const CollectiveCase& c = rank == odd && i == 5 ? other : all;
              Trial trial(c, rank, world.ranks(), 1);
              absl::Status done = comm.Run(AsOperation(c, comm.world_size(), trial));
              if (!done.ok()) return std::string(done.message());
            }
            return "nobody noticed";
          });
      EXPECT_THAT(outputs, Each(AllOf(HasSubstr("all ranks must call the same"), HasSubstr(text),
                                      HasSubstr("all_reduce of 1000 values of type 2"))));
    }
  }
}

// Some wait for it in memory, and others over rails.
TEST(HierarchyTest, ARankThatComesLateIsWaitedForByAllOthers) {
  World world = TwoPlacesOfTwo();
  world.timeout = absl::Seconds(4);
  const std::vector<std::string> outputs =
      world.Run([&](Communicator& comm, int rank) -> std::string {
        std::vector<std::byte> values(100000);
        if (rank == 3) absl::SleepFor(absl::Seconds(9));
        return std::string(comm.Run(AllReduceOf(comm.world_size(), rhUint8, rhSum, values.data(),
                                                values.data(), values.size()))
                               .message());
      });
  EXPECT_THAT(outputs, Each(""));
}

}  // namespace
}  // namespace railhead::comm
