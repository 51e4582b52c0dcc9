// SPDX-License-Identifier: Apache-2.0
//
// Messages and collectives of ranks in places of any sizes: what goes between ranks of one place
// goes through its memory, all else over rails, and one wait looks at both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/hierarchy/places_for_test.h"
#include "runtime/testing/call.h"
#include "runtime/testing/conformance.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/programs.h"

namespace railhead::comm {
namespace {

using collectives::Transfer;
using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Collective;
using testing::CollectiveCase;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::Process;
using testing::Trial;
using testing::programs::Operation;
using testing::programs::Program;
using Direction = Transfer::Direction;

constexpr const char* kFlat =
    "all_reduce=ring,reduce_scatter=ring,all_gather=ring,broadcast=binomial,barrier=ring";

std::vector<std::vector<int>> SomeSizes() {
  return {{1, 2}, {3, 1, 2}, {2, 3, 4}, {5, 1, 1}, {4, 4, 3}};
}

Transfer Send(int peer, std::vector<std::byte>& bytes) {
  return {Direction::kSend, peer, bytes.data(), bytes.size()};
}
Transfer Receive(int peer, std::vector<std::byte>& bytes) {
  return {Direction::kReceive, peer, bytes.data(), bytes.size()};
}

// ---- Collectives ----

std::vector<CollectiveCase> RandomCases(int ranks, unsigned seed, int count) {
  std::mt19937 random(seed);
  std::vector<CollectiveCase> cases;
  for (int i = 0; i < count; ++i) {
    CollectiveCase c{};
    c.collective = testing::kAllCollectives[random() % testing::kAllCollectives.size()];
    const std::vector<testing::Kind> kinds = testing::KindsOf(c.collective);
    const testing::Kind& kind = kinds[random() % kinds.size()];
    c.type = kind.type;
    c.op = kind.op;
    c.scaled = kind.scaled;
    // None, too, and some that are divided among leaders.
    c.count = random() % (size_t{1} << (random() % 17));
    // What a collective without a root makes of it is not looked at.
    c.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
    c.uneven = testing::HasUneven(c.collective) && random() % 2 == 0;
    c.in_place = testing::HasInPlace(c.collective, c.uneven) && random() % 2 == 0;
    cases.push_back(c);
  }
  return cases;
}

std::string PlayCases(Communicator& made, const std::vector<CollectiveCase>& cases, int rank,
                      int ranks) {
  rhComm comm;
  comm.communicator.reset(&made);
  std::string wrong;
  for (size_t i = 0; i < cases.size() && wrong.empty(); ++i) {
    Trial trial(cases[i], rank, ranks, i);
    wrong = testing::Play(&comm, trial);
    if (!wrong.empty()) wrong = absl::StrCat("case ", i, ", ", ToString(cases[i]), ": ", wrong);
  }
  comm.communicator.release();
  return wrong;
}

// Against plain arithmetic, over messages and in places, in any succession.
TEST(PlacesTest, EveryCollectiveOfAnySizesIsRight) {
  unsigned seed = 0;
  for (const std::vector<int>& sizes : SomeSizes()) {
    for (const char* algorithms : {kHierarchical, kFlat, ""}) {
      World world = World::Shuffled(sizes, ++seed);
      world.algorithms = algorithms;
      const std::vector<CollectiveCase> cases = RandomCases(world.ranks(), seed, 150);
      // Once, before ranks ask for them at the same time.
      for (const CollectiveCase& c : cases) {
        testing::ValueTable::Of(OperationOf(c, world.ranks()));
      }
      EXPECT_EQ(world.Run([&](Communicator& comm, int rank) {
        return PlayCases(comm, cases, rank, world.ranks());
      }),
                world.All(""))
          << world.ToString() << " " << algorithms;
    }
  }
}

// Every two ranks exchange as much, and rails carry nothing of what stays in a place.
TEST(PlacesTest, RailsCarryNothingInsideAPlace) {
  constexpr size_t kBytes = size_t{1} << 20U;
  const World world = World::Of({3, 1, 2});
  EXPECT_EQ(world.Run([&](Communicator& comm, int rank) -> std::string {
    const auto ranks = static_cast<size_t>(world.ranks());
    std::vector<std::byte> from(ranks * kBytes);
    std::vector<std::byte> to(ranks * kBytes);
    const uint64_t before = comm.Rails().front().transmit_bytes;
    const Parts parts(ranks, from.size());
    absl::Status done = comm.Run({.collective = collectives::Collective::kAllToAll,
                                  .ranks = world.ranks(),
                                  .send = from.data(),
                                  .receive = to.data(),
                                  .send_parts = parts,
                                  .receive_parts = parts});
    if (!done.ok()) return std::string(done.message());
    const double sent = static_cast<double>(comm.Rails().front().transmit_bytes - before) / kBytes;
    int away = 0;
    for (int other = 0; other < world.ranks(); ++other) away += world.Together(rank, other) ? 0 : 1;
    // Headers and acknowledgements are a little more.
    return sent >= away && sent < away + 0.1 ? "right" : absl::StrCat("sent ", sent);
  }),
            world.All("right"));
}

// Someone who measures a transport gets it, and nobody has to wonder why.
TEST(PlacesTest, ATransportThatWasChosenIsUsedInsidePodsAndExplained) {
  World world = World::Of({2, 1});
  world.transport = config::TransportChoice::kTcp;
  world.algorithms = "";
  const auto texts = world.Run([&](Communicator& made, int rank) -> std::string {
    std::vector<std::byte> bytes(1000);
    const uint64_t before = made.Rails().front().transmit_bytes;
    if (rank < 2) {
      const Transfer transfer = rank == 0 ? Send(1, bytes) : Receive(0, bytes);
      if (absl::Status done = made.Transfer({&transfer, 1}); !done.ok()) return "failed";
    }
    if (rank == 0 && made.Rails().front().transmit_bytes < before + 1000) return "in memory";
    rhComm comm;
    comm.communicator.reset(&made);
    rhCommInfo_t info{};
    info.struct_size = sizeof info;
    rhCommGetInfo(&comm, &info);
    comm.communicator.release();
    return absl::StrCat(info.unused_memory_reason, "\n", *made.Explain("all_reduce", 8));
  });
  constexpr const char* kReason = "rank 0 (pod p0): RAILHEAD_TRANSPORT=tcp is set there";
  EXPECT_THAT(
      texts,
      Each(AllOf(::testing::StartsWith(absl::StrCat(kReason, "\n")),
                 HasSubstr(absl::StrCat("shared memory inside pods is not used: ", kReason)))));
}

// ---- Messages ----

// Random legal programs, some messages of which go through memory.
TEST(PlacesTest, LegalProgramsEndWhereverRanksLive) {
  unsigned seed = 100;
  for (const std::vector<int>& sizes : SomeSizes()) {
    const World world = World::Shuffled(sizes, ++seed);
    std::mt19937 random(seed);
    std::vector<Program> programs;
    for (int i = 0; i < 12; ++i)
      programs.push_back(testing::programs::RandomProgram(random, world.ranks()));
    EXPECT_EQ(world.Run([&](Communicator& comm, int rank) -> std::string {
      std::mt19937 pace(static_cast<unsigned>(rank));
      const auto byte = [](size_t message, size_t i) {
        return static_cast<std::byte>(message * 31 + i * 7 + (i >> 12U));
      };
      for (size_t p = 0; p < programs.size(); ++p) {
        const Program& program = programs[p];
        for (const auto& step : program.ranks[static_cast<size_t>(rank)]) {
          std::vector<std::vector<std::byte>> buffers;
          std::vector<Transfer> transfers;
          for (const Operation& operation : step) {
            const testing::programs::Message& message = program.messages[operation.message];
            std::vector<std::byte>& buffer = buffers.emplace_back(message.size);
            for (size_t i = 0; operation.sends && i < buffer.size(); ++i) {
              buffer[i] = byte(operation.message, i);
            }
            transfers.push_back({operation.sends ? Direction::kSend : Direction::kReceive,
                                 operation.sends ? message.to : message.from, buffer.data(),
                                 buffer.size()});
          }
          if (pace() % 4 == 0) absl::SleepFor(absl::Microseconds(pace() % 2000));
          if (absl::Status done = comm.Transfer(transfers); !done.ok()) {
            return std::string(done.message());
          }
          for (size_t t = 0; t < step.size(); ++t) {
            for (size_t i = 0; i < buffers[t].size(); ++i) {
              if (buffers[t][i] == byte(step[t].message, i)) continue;
              return absl::StrCat("program ", p, ": message ", step[t].message, " is wrong");
            }
          }
        }
      }
      return "right";
    }),
              world.All("right"))
        << world.ToString();
  }
}

// What comes over rails is not kept waiting by what moves in memory all the time, nor the other way
// round: neither would end in the time of the test.
TEST(PlacesTest, NeitherMemoryNorRailsStarveTheOther) {
  const World world = World::Of({2, 1});
  constexpr int kMessages = 20000;
  EXPECT_EQ(world.Run([&](Communicator& comm, int rank) -> std::string {
    std::vector<std::byte> small(8);
    std::vector<std::byte> large(size_t{1} << 20U);
    std::vector<std::byte> other(large.size());
    absl::Status done;
    if (rank == 0) {
      // A reply over rails to each of these, while rank 1's are always there.
      std::vector<Transfer> transfers(40, Receive(1, large));
      transfers.push_back(Receive(2, other));
      transfers.push_back(Send(2, small));
      for (int i = 0; i < 10 && done.ok(); ++i) done = comm.Transfer(transfers);
    } else if (rank == 1) {
      const std::vector<Transfer> transfers(400, Send(0, large));
      done = comm.Transfer(transfers);
    } else {
      for (int i = 0; i < 10 && done.ok(); ++i) {
        done = comm.Transfer({Send(0, other), Receive(0, small)});
      }
    }
    if (!done.ok()) return std::string(done.message());
    // Small ones in turns, a step of which takes microseconds if everybody looks.
    for (int i = 0; i < kMessages / 10 && done.ok(); ++i) {
      const int next = (rank + 1) % 3;
      const int previous = (rank + 2) % 3;
      std::vector<std::byte> got(8);
      done = comm.Transfer({Send(next, small), Receive(previous, got)});
    }
    return std::string(done.message());
  }),
            world.All(""));
}

// ---- Errors ----

// Ranks as processes: one of them ends, and the others wait for it and for another one.
std::vector<std::string> WaitForTheLost(const World& world, int lost,
                                        const std::function<void(Communicator& comm)>& end) {
  Meeting meeting;
  std::vector<Process> processes;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    processes.push_back(Process::Fork({}, [&]() -> std::string {
      auto comm = world.Join(rank, meeting);
      if (!comm.ok()) return std::string(comm.status().message());
      if (absl::Status ready = (*comm)->Run({.ranks = world.ranks()}); !ready.ok())
        return "not ready";
      // Others may still be in the barrier.
      std::vector<std::byte> through(1);
      for (int other = 0; other < world.ranks(); ++other) {
        if (other == lost || (rank != lost && rank != other)) continue;
        const Transfer tells = rank == lost ? Receive(other, through) : Send(lost, through);
        if (absl::Status told = (*comm)->Transfer({&tells, 1}); !told.ok()) {
          return std::string(told.message());
        }
      }
      if (rank == lost) {
        absl::SleepFor(absl::Milliseconds(200));
        end(**comm);
      }
      std::vector<std::vector<std::byte>> buffers(static_cast<size_t>(world.ranks()),
                                                  std::vector<std::byte>(100));
      std::vector<Transfer> transfers;
      for (int other = 0; other < world.ranks(); ++other) {
        if (other != rank) transfers.push_back(Receive(other, buffers[static_cast<size_t>(other)]));
      }
      return std::string((*comm)->Transfer(transfers).message());
    }));
  }
  std::vector<std::string> outputs;
  for (Process& process : processes) {
    outputs.push_back(process.Wait(MonotonicNow() + absl::Seconds(50)).output);
  }
  outputs.erase(outputs.begin() + lost);
  return outputs;
}

TEST(PlacesTest, ARankThatDiesOrAbortsIsNamedByWhoWaitsInMemoryAndOnRails) {
  const World world = World::Of({2, 1, 2});
  for (const int lost : {0, 1, 2}) {
    const std::string name = absl::StrCat("rank ", lost, " (pod p", lost, ")");
    EXPECT_THAT(WaitForTheLost(world, lost, [](Communicator&) { ::raise(SIGKILL); }),
                Each(AllOf(HasSubstr(name), HasSubstr("send_receive"))));
    EXPECT_THAT(WaitForTheLost(world, lost, [](Communicator& comm) { comm.Abort("enough"); }),
                Each(AllOf(HasSubstr(name), HasSubstr("enough"))));
  }
}

// All wait for each other in a circle, in memory and over rails.
TEST(PlacesTest, AWaitThatHasNoEndSaysForWhatItWaits) {
  World world = World::Of({2, 1});
  world.timeout = absl::Seconds(2);
  const auto outputs = world.Run([&](Communicator& comm, int rank) {
    std::vector<std::byte> one(100);
    std::vector<std::byte> two(200);
    absl::Status done = rank == 0 ? comm.Transfer({Receive(1, one), Receive(2, two)})
                                  : comm.Transfer({Receive(0, one)});
    return std::string(done.message());
  });
  EXPECT_THAT(outputs, Each(HasSubstr("nothing has moved for 2s (")));
  EXPECT_THAT(outputs,
              ::testing::Contains(
                  AnyOf(HasSubstr("in shared memory: rank 1 has given 0 of 100 bytes of message 0"),
                        HasSubstr("in shared memory: rank 0 has given 0 of 100 bytes of message 0"),
                        HasSubstr("rank 0 (pod p0)"))));
}

// Ranks 1 and 2 have other numbers in their memory.
TEST(PlacesTest, SizesThatDifferAreAnErrorOnAllThatNamesBothSides) {
  const World world = World::Of({1, 2});
  const auto outputs = world.Run([&](Communicator& comm, int rank) {
    std::vector<std::byte> bytes(rank == 1 ? 100 : 200);
    const Transfer transfer = rank == 1 ? Send(2, bytes) : Receive(rank == 2 ? 1 : 2, bytes);
    absl::Status done = comm.Transfer({&transfer, 1});
    // What it sent fits into memory; it learns it from what comes next.
    if (rank == 1 && done.ok()) done = comm.Run({.ranks = world.ranks()});
    return std::string(done.message());
  });
  EXPECT_THAT(outputs,
              Each(AllOf(HasSubstr("rank 2 (pod p2): send_receive number 0"),
                         HasSubstr("a message of 100 bytes from rank 1 was refused: it has 200 "
                                   "bytes here"))));
}

// ---- Families ----

// A rank's handle of the C API in a world; "" on success.
std::string JoinAs(const World& world, int rank, Meeting& meeting, rhComm_t* comm) {
  auto made = world.Join(rank, meeting);
  if (!made.ok()) return std::string(made.status().message());
  *comm = new rhComm;
  (*comm)->communicator = *std::move(made);
  return "";
}

std::string Explained(rhComm_t comm) {
  std::array<char, 4096> text{};
  rhCommExplain(comm, "all_reduce", 8, text.data(), text.size());
  const std::string all = text.data();
  return all.substr(0, all.find('\n'));
}

// A few collectives with plain results; "right", or what is not.
std::string Check(rhComm_t comm) {
  int rank = 0;
  int ranks = 0;
  rhCommUserRank(comm, &rank);
  rhCommCount(comm, &ranks);
  std::vector<int> sum(30000, rank + 1);
  if (rhAllReduce(sum.data(), sum.data(), sum.size(), rhInt32, rhSum, comm, nullptr) != rhSuccess) {
    return rhGetLastError(comm);
  }
  for (const int value : sum) {
    if (value != ranks * (ranks + 1) / 2) return "a wrong sum";
  }
  std::vector<int> all(static_cast<size_t>(ranks));
  if (rhAllGather(&rank, all.data(), 1, rhInt32, comm, nullptr) != rhSuccess) {
    return rhGetLastError(comm);
  }
  for (int r = 0; r < ranks; ++r) {
    if (all[static_cast<size_t>(r)] != r) return "a wrong gather";
  }
  std::vector<int> to(all.size());
  if (rhAlltoAll(all.data(), to.data(), 1, rhInt32, comm, nullptr) != rhSuccess) {
    return rhGetLastError(comm);
  }
  for (const int value : to) {
    if (value != rank) return "a wrong all-to-all";
  }
  return "right";
}

// Ranks die, until one place has a single rank.
TEST(PlacesTest, WhatShrinkLeavesOfPlacesStillUsesTheirMemory) {
  World world = World::Of({2, 3, 2});
  world.algorithms = "all_reduce=hierarchical";
  Meeting meeting;
  std::vector<Process> processes;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    processes.push_back(Process::Fork({}, [&]() -> std::string {
      rhComm_t comm = nullptr;
      std::string text = JoinAs(world, rank, meeting, &comm);
      std::vector<int> members = {0, 1, 2, 3, 4, 5, 6};
      for (const int victim : {0, 3, 6}) {
        if (!text.empty()) return text;
        for (int rounds = 0; Check(comm) == "right"; ++rounds) {
          if (rank == victim && rounds == 3) ::raise(SIGKILL);
        }
        const auto lost = std::find(members.begin(), members.end(), victim);
        const int excluded = static_cast<int>(lost - members.begin());
        members.erase(lost);
        rhComm_t smaller = nullptr;
        if (rhCommShrink(comm, &excluded, 1, &smaller, nullptr) != rhSuccess) {
          return rhGetLastError(comm);
        }
        rhCommAbort(std::exchange(comm, smaller));
      }
      text = absl::StrCat(Check(comm), "; ", Explained(comm));
      rhCommDestroy(comm);
      return text;
    }));
  }
  for (int rank = 0; rank < world.ranks(); ++rank) {
    const std::string output =
        processes[static_cast<size_t>(rank)].Wait(MonotonicNow() + absl::Seconds(100)).output;
    if (rank == 0 || rank == 3 || rank == 6) continue;
    EXPECT_THAT(output, AllOf(::testing::StartsWith("right; "), HasSubstr(" hierarchical (")));
  }
}

TEST(PlacesTest, PartsThatSplitMakesOfPlacesUseTheirMemory) {
  World world = World::Of({2, 3, 2});
  world.algorithms = "all_reduce=hierarchical";
  Meeting meeting;
  std::vector<Process> processes;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    processes.push_back(Process::Fork({}, [&]() -> std::string {
      rhComm_t comm = nullptr;
      std::string text = JoinAs(world, rank, meeting, &comm);
      if (!text.empty()) return text;
      rhComm_t part = nullptr;
      // {1, 3, 1}, and {1, 1}.
      const int color = rank == 0 || rank == 6 ? 1 : 0;
      if (rhCommSplit(comm, color, -rank, &part, nullptr) != rhSuccess) return rhGetLastError(comm);
      text = absl::StrCat(Check(part), "; ", Check(comm), "; ", Explained(part));
      rhCommDestroy(part);
      rhCommDestroy(comm);
      return text;
    }));
  }
  for (int rank = 0; rank < world.ranks(); ++rank) {
    const std::string output =
        processes[static_cast<size_t>(rank)].Wait(MonotonicNow() + absl::Seconds(60)).output;
    const bool alone = rank == 0 || rank == 6;
    EXPECT_THAT(output, ::testing::StartsWith("right; right; "));
    EXPECT_EQ(output.find(" hierarchical (") == std::string::npos, alone) << output;
  }
}

// Those that come are of a place of their own, which is this machine's.
TEST(PlacesTest, RanksThatGrowBringsAreAPlaceMore) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "ThreadSanitizer ends a process that starts threads after a fork of one with threads";
#endif
  World world = World::Of({2, 1});
  world.algorithms = "all_reduce=hierarchical";
  Meeting meeting;
  const testing::Environment environment = {{"RAILHEAD_TRANSPORT", "auto"},
                                            {"RAILHEAD_ALGO", world.algorithms},
                                            {"RAILHEAD_RAILS_FILE", "/nonexistent/rails.json"},
                                            {"RAILHEAD_METRICS_PORT", "0"},
                                            {"RAILHEAD_LOG", "error"}};
  std::vector<Process> processes;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    processes.push_back(Process::Fork({}, [&]() -> std::string {
      rhComm_t comm = nullptr;
      std::string text = JoinAs(world, rank, meeting, &comm);
      if (!text.empty()) return text;
      rhUniqueId id{};
      std::vector<Process> joined;
      if (rank == 0) {
        if (rhGetUniqueId(&id) != rhSuccess) return rhGetLastError(nullptr);
        for (int r = 3; r < 6; ++r) {
          joined.push_back(Process::Fork(environment, [&]() -> std::string {
            rhComm_t larger = nullptr;
            if (rhCommGrow(nullptr, 6, id, r, &larger, nullptr) != rhSuccess) {
              return rhGetLastError(nullptr);
            }
            std::string right = absl::StrCat(Check(larger), "; ", Explained(larger));
            rhCommDestroy(larger);
            return right;
          }));
        }
      }
      if (rhBroadcast(&id, &id, sizeof id, rhUint8, 0, comm, nullptr) != rhSuccess) {
        return rhGetLastError(comm);
      }
      rhComm_t larger = nullptr;
      if (rhCommGrow(comm, 6, id, -1, &larger, nullptr) != rhSuccess) {
        return rhGetLastError(nullptr);
      }
      text = absl::StrCat(Check(larger), "; ", Explained(larger));
      rhCommDestroy(larger);
      rhCommDestroy(comm);
      for (Process& process : joined) {
        absl::StrAppend(&text, "\n", process.Wait(MonotonicNow() + absl::Seconds(60)).output);
      }
      return text;
    }));
  }
  for (int rank = 0; rank < world.ranks(); ++rank) {
    const std::string output =
        processes[static_cast<size_t>(rank)].Wait(MonotonicNow() + absl::Seconds(90)).output;
    const std::vector<std::string> lines = absl::StrSplit(output, '\n');
    EXPECT_EQ(lines.size(), rank == 0 ? 4U : 1U);
    EXPECT_THAT(lines, Each(AllOf(::testing::StartsWith("right; "), HasSubstr(" hierarchical ("))));
  }
}

}  // namespace
}  // namespace railhead::comm
