// SPDX-License-Identifier: Apache-2.0
//
// Memory that collectives read and write: random counts, types, displacements before and behind the
// buffer, with and without MPI_IN_PLACE, in memory of which every byte is compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "mpi/collectives.h"
#include "mpi/testing/program.h"

namespace railhead::mpi {
namespace {

using LayoutsTest = ProgramTest;
using Random = std::mt19937;

constexpr int kRanks = 3;
// Sizes of messages are multiples of the sizes of all types.
constexpr std::array<int, 4> kTypeBytes = {1, 2, 3, 6};
constexpr int kUnit = 6;

int UpTo(int most, Random& random) { return std::uniform_int_distribution<int>(0, most)(random); }

// For what each rank chooses for itself. `random` is the same on all ranks.
Random OwnOf(int rank, Random& random) { return Random(random() + static_cast<unsigned>(rank)); }

struct Type {
  Datatype* handle;
  int bytes;
};

std::vector<Type> MakeTypes() {
  std::vector<Type> types;
  for (const int bytes : kTypeBytes) {
    Datatype* made = nullptr;
    EXPECT_EQ(MPI_Type_contiguous(bytes, kByte, &made), kSuccess);
    types.push_back({made, bytes});
  }
  return types;
}

// The byte at `i` of what rank `from` sends to rank `to`.
uint8_t Value(int from, int to, size_t i) {
  return static_cast<uint8_t>((static_cast<size_t>(from) * 89 + static_cast<size_t>(to) * 37 + i) %
                              241);
}

// Memory with parts for the ranks, a buffer that begins anywhere in it, and what it is to contain.
struct Memory {
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> wanted;
  size_t base = 0;                 // where the buffer begins
  std::vector<size_t> begins;      // of the parts
  std::vector<int> counts;         // in elements
  std::vector<int> displacements;  // in elements, from `base` on
  Type type = {};

  void* buffer() { return bytes.data() + base; }
  // Of a part, in both: `fill` in `bytes`, too.
  void Set(int part, size_t size, int from, int to, bool fill) {
    for (size_t i = 0; i < size; ++i) {
      const size_t at = begins[static_cast<size_t>(part)] + i;
      wanted[at] = Value(from, to, i);
      if (fill) bytes[at] = wanted[at];
    }
  }
};

// `sizes`: of the parts, in units. `dense`: the parts follow each other, from the buffer's begin
// on.
Memory Lay(const std::vector<int>& sizes, bool dense, const std::vector<Type>& types,
           Random& random) {
  Memory memory;
  memory.type = types[static_cast<size_t>(UpTo(3, random))];
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!dense) std::shuffle(order.begin(), order.end(), random);
  constexpr int kGuard = 5;
  int end = kGuard;
  std::vector<int> begins(sizes.size());
  for (const size_t part : order) {
    if (!dense) end += UpTo(2, random);
    begins[part] = end;
    end += sizes[part];
  }
  const int base = dense ? kGuard : UpTo(end + kGuard, random);
  memory.base = static_cast<size_t>(base * kUnit);
  memory.bytes.assign(static_cast<size_t>((end + kGuard) * kUnit), 0xa5);
  memory.wanted = memory.bytes;
  for (size_t part = 0; part < sizes.size(); ++part) {
    memory.begins.push_back(static_cast<size_t>(begins[part] * kUnit));
    memory.counts.push_back(sizes[part] * kUnit / memory.type.bytes);
    memory.displacements.push_back((begins[part] - base) * kUnit / memory.type.bytes);
  }
  return memory;
}

// A part that a rank sends or receives as a whole.
Memory One(int size, const std::vector<Type>& types, Random& random) {
  return Lay({size}, true, types, random);
}

std::vector<int> RandomSizes(bool equal, Random& random) {
  std::vector<int> sizes(kRanks, UpTo(9, random));
  if (!equal) {
    for (int& size : sizes) size = UpTo(2, random) * UpTo(5, random);
  }
  return sizes;
}

size_t Bytes(int units) { return static_cast<size_t>(units * kUnit); }

void CheckGather(bool vector, bool all, int rank, const std::vector<Type>& types, Random& random) {
  const std::vector<int> sizes = RandomSizes(!vector, random);
  const int root = UpTo(kRanks - 1, random);
  const bool in_place = UpTo(1, random) == 1 && (all || rank == root);
  Random own = OwnOf(rank, random);
  Memory send = One(sizes[static_cast<size_t>(rank)], types, own);
  Memory receive = Lay(sizes, !vector, types, own);
  const auto mine = static_cast<size_t>(rank);
  send.Set(0, Bytes(sizes[mine]), rank, 0, true);
  if (all || rank == root) {
    for (int r = 0; r < kRanks; ++r) {
      receive.Set(r, Bytes(sizes[static_cast<size_t>(r)]), r, 0, in_place && r == rank);
    }
  }
  const void* from = in_place ? kInPlace : send.buffer();
  const int count = send.counts[0];
  Datatype* const type = send.type.handle;
  int error = 0;
  if (all) {
    error = vector ? MPI_Allgatherv(from, count, type, receive.buffer(), receive.counts.data(),
                                    receive.displacements.data(), receive.type.handle, kWorld)
                   : MPI_Allgather(from, count, type, receive.buffer(), receive.counts[0],
                                   receive.type.handle, kWorld);
  } else {
    error = vector ? MPI_Gatherv(from, count, type, receive.buffer(), receive.counts.data(),
                                 receive.displacements.data(), receive.type.handle, root, kWorld)
                   : MPI_Gather(from, count, type, receive.buffer(), receive.counts[0],
                                receive.type.handle, root, kWorld);
  }
  ASSERT_EQ(error, kSuccess);
  EXPECT_EQ(receive.bytes, receive.wanted);
  EXPECT_EQ(send.bytes, send.wanted);
}

void CheckScatter(bool vector, int rank, const std::vector<Type>& types, Random& random) {
  const std::vector<int> sizes = RandomSizes(!vector, random);
  const int root = UpTo(kRanks - 1, random);
  const bool in_place = UpTo(1, random) == 1 && rank == root;
  Random own = OwnOf(rank, random);
  Memory send = Lay(sizes, !vector, types, own);
  const auto mine = static_cast<size_t>(rank);
  Memory receive = One(sizes[mine], types, own);
  for (int r = 0; r < kRanks; ++r) send.Set(r, Bytes(sizes[static_cast<size_t>(r)]), root, r, true);
  if (!in_place) receive.Set(0, Bytes(sizes[mine]), root, rank, false);
  void* const to = in_place ? kInPlace : receive.buffer();
  const int count = receive.counts[0];
  Datatype* const type = receive.type.handle;
  ASSERT_EQ(vector ? MPI_Scatterv(send.buffer(), send.counts.data(), send.displacements.data(),
                                  send.type.handle, to, count, type, root, kWorld)
                   : MPI_Scatter(send.buffer(), send.counts[0], send.type.handle, to, count, type,
                                 root, kWorld),
            kSuccess);
  EXPECT_EQ(receive.bytes, receive.wanted);
  EXPECT_EQ(send.bytes, send.wanted);
}

void CheckAllToAll(bool vector, int rank, const std::vector<Type>& types, Random& random) {
  const bool in_place = UpTo(1, random) == 1;
  // sizes[a][b]: what rank a sends to rank b. In place, b sends as much to a.
  std::vector<std::vector<int>> sizes(kRanks, std::vector<int>(kRanks, UpTo(9, random)));
  for (size_t a = 0; vector && a < kRanks; ++a) {
    for (size_t b = 0; b < kRanks; ++b) {
      sizes[a][b] = in_place && b < a ? sizes[b][a] : UpTo(2, random) * UpTo(5, random);
    }
  }
  const auto mine = static_cast<size_t>(rank);
  std::vector<int> arriving;
  for (const std::vector<int>& row : sizes) arriving.push_back(row[mine]);
  Random own = OwnOf(rank, random);
  Memory send = Lay(sizes[mine], !vector, types, own);
  Memory receive = Lay(arriving, !vector, types, own);
  for (int r = 0; r < kRanks; ++r) {
    const auto at = static_cast<size_t>(r);
    send.Set(r, Bytes(sizes[mine][at]), rank, r, true);
    if (in_place) receive.Set(r, Bytes(arriving[at]), rank, r, true);
    receive.Set(r, Bytes(arriving[at]), r, rank, false);
  }
  const void* from = in_place ? kInPlace : send.buffer();
  ASSERT_EQ(vector ? MPI_Alltoallv(from, send.counts.data(), send.displacements.data(),
                                   send.type.handle, receive.buffer(), receive.counts.data(),
                                   receive.displacements.data(), receive.type.handle, kWorld)
                   : MPI_Alltoall(from, send.counts[0], send.type.handle, receive.buffer(),
                                  receive.counts[0], receive.type.handle, kWorld),
            kSuccess);
  EXPECT_EQ(receive.bytes, receive.wanted);
  EXPECT_EQ(send.bytes, send.wanted);
}

TEST_F(LayoutsTest, EveryByteIsWhereMpiWantsIt) {
  const auto program = [] {
    const int rank = RankInWorld();
    const std::vector<Type> types = MakeTypes();
    for (unsigned seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Random random(seed);
      const int call = UpTo(7, random);
      const bool vector = call % 2 == 1;
      if (call < 4) CheckGather(vector, call < 2, rank, types, random);
      if (call == 4 || call == 5) CheckScatter(vector, rank, types, random);
      if (call >= 6) CheckAllToAll(vector, rank, types, random);
    }
  };
  EXPECT_EXIT(RunRanks(kRanks, program), testing::ExitedWithCode(0), "");
}

// What a rank sends to itself, of `sent` bytes into a buffer of `room`, by each collective.
struct Own {
  std::array<uint8_t, 64> send = {};
  std::array<uint8_t, 64> receive = {};
  int sent = 0;
  int room = 0;
};
using OwnCall = std::function<int(Own& own, Communicator* comm)>;

// The last two parameters of a vector collective are for ranks that all have the same part.
std::vector<int> Each(int count) { return std::vector<int>(kRanks, count); }
std::vector<int> Apart(int count) {
  std::vector<int> at;
  for (int r = 0; r < kRanks; ++r) at.push_back(r * count);
  return at;
}

const std::vector<std::pair<std::string, OwnCall>>& OwnCalls() {
  static const std::vector<std::pair<std::string, OwnCall>> calls = {
      {"Allgather",
       [](Own& own, Communicator* comm) {
         return MPI_Allgather(own.send.data(), own.sent, kByte, own.receive.data(), own.room, kByte,
                              comm);
       }},
      {"Allgatherv",
       [](Own& own, Communicator* comm) {
         return MPI_Allgatherv(own.send.data(), own.sent, kByte, own.receive.data(),
                               Each(own.room).data(), Apart(own.room).data(), kByte, comm);
       }},
      {"Alltoall",
       [](Own& own, Communicator* comm) {
         return MPI_Alltoall(own.send.data(), own.sent, kByte, own.receive.data(), own.room, kByte,
                             comm);
       }},
      {"Alltoallv",
       [](Own& own, Communicator* comm) {
         return MPI_Alltoallv(own.send.data(), Each(own.sent).data(), Apart(own.sent).data(), kByte,
                              own.receive.data(), Each(own.room).data(), Apart(own.room).data(),
                              kByte, comm);
       }},
      {"Gather",
       [](Own& own, Communicator* comm) {
         return MPI_Gather(own.send.data(), own.sent, kByte, own.receive.data(), own.room, kByte, 0,
                           comm);
       }},
      {"Gatherv",
       [](Own& own, Communicator* comm) {
         return MPI_Gatherv(own.send.data(), own.sent, kByte, own.receive.data(),
                            Each(own.room).data(), Apart(own.room).data(), kByte, 0, comm);
       }},
      {"Scatter",
       [](Own& own, Communicator* comm) {
         return MPI_Scatter(own.send.data(), own.sent, kByte, own.receive.data(), own.room, kByte,
                            0, comm);
       }},
      {"Scatterv",
       [](Own& own, Communicator* comm) {
         return MPI_Scatterv(own.send.data(), Each(own.sent).data(), Apart(own.sent).data(), kByte,
                             own.receive.data(), own.room, kByte, 0, comm);
       }},
  };
  return calls;
}

TEST_F(LayoutsTest, AMessageThatDoesNotFitIsAnErrorAndWritesNothing) {
  const auto program = [] {
    Random random(1);
    for (const auto& [name, call] : OwnCalls()) {
      for (int turn = 0; turn < 40; ++turn) {
        Own own;
        own.send.fill(1);
        own.receive.fill(2);
        own.sent = UpTo(16, random);
        own.room = UpTo(16, random);
        // Those with a root: the other ranks would wait for it.
        const bool rooted = name[0] == 'G' || name[0] == 'S';
        Communicator* const comm = rooted || UpTo(1, random) == 0 ? kSelf : kWorld;
        const int error = call(own, comm);
        const int wanted = own.sent > own.room   ? kErrorTruncate
                           : own.sent < own.room ? kErrorCount
                                                 : kSuccess;
        ASSERT_EQ(error, wanted) << name << ": " << own.sent << " into " << own.room;
        const int written = wanted != kSuccess ? 0 : own.room * (comm == kSelf ? 1 : kRanks);
        for (int i = 0; i < 64; ++i) {
          ASSERT_EQ(own.receive[static_cast<size_t>(i)], i < written ? 1 : 2) << name << " " << i;
        }
      }
    }
  };
  EXPECT_EXIT(RunRanks(kRanks, program), testing::ExitedWithCode(0), "");
}

// Only its peers know what a rank expects: they differ, and each is right by itself. All ranks
// fail, except if one has a part of no bytes: it may not know of the call. The next call fails, or
// has its own data.
TEST_F(LayoutsTest, RanksThatDifferGetErrorsAndNoWrongData) {
  setenv("RAILHEAD_TIMEOUT_SECONDS", "4", 1);
  setenv("RAILHEAD_START_TIMEOUT_SECONDS", "60", 1);
  for (const auto& [name, call] : OwnCalls()) {
    for (const char* transport : {"shm", "tcp"}) {
      for (const int other : {0, 4, 12}) {
        const auto program = [&call = call, &name = name, other] {
          // All ranks have started then; one that is late in the barrier may get the error there.
          int errors = MPI_Barrier(kWorld) != kSuccess ? 1 : 0;
          for (const int value : {1, 3}) {
            Own own;
            own.send.fill(static_cast<uint8_t>(value));
            own.receive.fill(2);
            own.sent = own.room = RankInWorld() == 1 && value == 1 ? other : 8;
            const int error = call(own, kWorld);
            errors += error != kSuccess ? 1 : 0;
            const bool one_part = name[0] == 'S';
            const auto end = own.receive.begin() + own.room * (one_part ? 1 : kRanks);
            EXPECT_EQ(std::count(end, own.receive.end(), 2), own.receive.end() - end);
            const bool receives = name[0] != 'G' || RankInWorld() == 0;
            if (error != kSuccess || value == 1 || !receives) continue;
            EXPECT_EQ(std::count(own.receive.begin(), end, value), end - own.receive.begin());
          }
          errors += MPI_Barrier(kWorld) != kSuccess ? 1 : 0;
          EXPECT_TRUE(errors > 0 || other == 0);
        };
        SCOPED_TRACE(name + " over " + transport + ", " + std::to_string(other));
        EXPECT_EXIT(RunRanks(kRanks, program, transport), testing::ExitedWithCode(0), "");
      }
    }
  }
  unsetenv("RAILHEAD_TIMEOUT_SECONDS");
  unsetenv("RAILHEAD_START_TIMEOUT_SECONDS");
}

TEST_F(LayoutsTest, ACountThatNoMemoryHasIsAnError) {
  StartMpi();
  Datatype* pages = nullptr;
  Datatype* many = nullptr;
  Datatype* more = nullptr;
  ASSERT_EQ(MPI_Type_contiguous(INT_MAX, kInt, &pages), kSuccess);
  ASSERT_EQ(MPI_Type_contiguous(1 << 20, pages, &many), kSuccess);
  EXPECT_EQ(MPI_Type_contiguous(INT_MAX, many, &more), kErrorCount);
  EXPECT_EQ(more, nullptr);
  uint8_t byte = 7;
  const int one = INT_MAX;
  const int none = 0;
  const int low = INT_MIN;
  MpiStatus status;
  const auto refused = [](int error) { EXPECT_EQ(error, kErrorCount); };
  refused(MPI_Bcast(&byte, one, many, 0, kSelf));
  refused(MPI_Allgather(&byte, one, many, &byte, one, many, kSelf));
  refused(MPI_Allgatherv(kInPlace, 0, nullptr, &byte, &one, &none, many, kSelf));
  EXPECT_EQ(MPI_Allgatherv(kInPlace, 0, nullptr, &byte, &one, &low, many, kSelf), kErrorCount);
  const int single = 1;
  EXPECT_EQ(MPI_Allgatherv(kInPlace, 0, nullptr, &byte, &single, &low, many, kSelf), kErrorArg);
  refused(MPI_Gather(&byte, one, many, &byte, one, many, 0, kSelf));
  refused(MPI_Scatterv(&byte, &one, &none, many, kInPlace, 0, nullptr, 0, kSelf));
  refused(MPI_Alltoall(kInPlace, 0, nullptr, &byte, one, many, kSelf));
  refused(MPI_Alltoallv(kInPlace, nullptr, nullptr, nullptr, &byte, &one, &none, many, kSelf));
  refused(MPI_Sendrecv(&byte, one, many, 0, 0, &byte, one, many, 0, 0, kSelf, &status));
  EXPECT_EQ(byte, 7);
  for (Datatype** type : {&pages, &many}) EXPECT_EQ(MPI_Type_free(type), kSuccess);
}

}  // namespace
}  // namespace railhead::mpi
