// SPDX-License-Identifier: Apache-2.0
#include "mpi/collectives.h"

#include <gtest/gtest.h>

#include <array>

#include "mpi/testing/program.h"

namespace railhead::mpi {
namespace {

using CollectivesTest = ProgramTest;

// MPI ignores the count and the type of a buffer that is MPI_IN_PLACE.
TEST_F(CollectivesTest, InPlaceTheCountAndTheTypeMayBeAnything) {
  const auto program = [] {
    const int rank = RankInWorld();
    const std::array<int, 2> counts = {1, 1};
    const std::array<int, 2> at = {0, 1};
    std::array<int, 2> both = {rank + 1, rank + 1};
    const std::array<int, 2> known = {1, 2};
    EXPECT_EQ(MPI_Allgather(kInPlace, -1, nullptr, both.data(), 1, kInt, kWorld), kSuccess);
    EXPECT_EQ(both, known);
    both = {rank + 1, rank + 1};
    EXPECT_EQ(
        MPI_Allgatherv(kInPlace, -1, nullptr, both.data(), counts.data(), at.data(), kInt, kWorld),
        kSuccess);
    EXPECT_EQ(both, known);
    both = {rank + 1, rank + 1};
    EXPECT_EQ(MPI_Alltoall(kInPlace, -1, nullptr, both.data(), 1, kInt, kWorld), kSuccess);
    EXPECT_EQ(both, known);
    both = {rank + 1, rank + 1};
    EXPECT_EQ(MPI_Alltoallv(kInPlace, nullptr, nullptr, nullptr, both.data(), counts.data(),
                            at.data(), kInt, kWorld),
              kSuccess);
    EXPECT_EQ(both, known);
  };
  EXPECT_EXIT(RunRanks(2, program), testing::ExitedWithCode(0), "");
}

TEST_F(CollectivesTest, InPlaceAtTheRootTheCountAndTheTypeMayBeAnything) {
  const auto program = [] {
    const int rank = RankInWorld();
    const bool is_root = rank == 1;
    const std::array<int, 2> counts = {1, 1};
    const std::array<int, 2> at = {0, 1};
    const std::array<int, 2> known = {1, 2};
    const int mine = rank + 1;
    for (const bool vector : {false, true}) {
      std::array<int, 2> both = {0, is_root ? 2 : 0};
      const void* const send = is_root ? kInPlace : static_cast<const void*>(&mine);
      Datatype* const type = is_root ? nullptr : kInt;
      EXPECT_EQ(vector ? MPI_Gatherv(send, 1, type, both.data(), counts.data(), at.data(), kInt, 1,
                                     kWorld)
                       : MPI_Gather(send, 1, type, both.data(), 1, kInt, 1, kWorld),
                kSuccess);
      if (is_root) {
        EXPECT_EQ(both, known);
      }
      int part = 0;
      void* const receive = is_root ? kInPlace : &part;
      EXPECT_EQ(vector ? MPI_Scatterv(both.data(), counts.data(), at.data(), kInt, receive, 1, type,
                                      1, kWorld)
                       : MPI_Scatter(both.data(), 1, kInt, receive, 1, type, 1, kWorld),
                kSuccess);
      EXPECT_EQ(part, is_root ? 0 : 1);
    }
  };
  EXPECT_EXIT(RunRanks(2, program), testing::ExitedWithCode(0), "");
}

// A buffer that may not be MPI_IN_PLACE is an error, not memory at address 1.
TEST_F(CollectivesTest, InPlaceWhereMpiDoesNotAllowItIsAnError) {
  const auto program = [] {
    const std::array<int, 2> counts = {1, 1};
    const std::array<int, 2> at = {0, 1};
    std::array<int, 2> both = {};
    int one = 0;
    const int root = 1 - RankInWorld();  // each rank is another's
    const auto refused = [](int error) { EXPECT_EQ(error, kErrorBuffer); };
    refused(MPI_Gather(kInPlace, 1, nullptr, nullptr, 1, nullptr, root, kWorld));
    refused(MPI_Gatherv(kInPlace, 1, nullptr, nullptr, nullptr, nullptr, nullptr, root, kWorld));
    refused(MPI_Scatter(nullptr, 1, nullptr, kInPlace, 1, nullptr, root, kWorld));
    refused(MPI_Scatterv(nullptr, nullptr, nullptr, nullptr, kInPlace, 1, nullptr, root, kWorld));
    refused(MPI_Reduce(kInPlace, nullptr, 1, kInt, kSum, root, kWorld));
    const int self = RankInWorld();
    refused(MPI_Gather(&one, 1, kInt, kInPlace, 1, nullptr, self, kWorld));
    refused(MPI_Gatherv(&one, 1, kInt, kInPlace, counts.data(), at.data(), kInt, self, kWorld));
    refused(MPI_Scatter(kInPlace, 1, nullptr, &one, 1, kInt, self, kWorld));
    refused(MPI_Scatterv(kInPlace, counts.data(), at.data(), kInt, &one, 1, kInt, self, kWorld));
    refused(MPI_Reduce(&one, kInPlace, 1, kInt, kSum, self, kWorld));
    refused(MPI_Allreduce(&one, kInPlace, 1, kInt, kSum, kWorld));
    refused(MPI_Reduce_scatter_block(both.data(), kInPlace, 1, kInt, kSum, kWorld));
    refused(MPI_Allgather(&one, 1, kInt, kInPlace, 1, kInt, kWorld));
    refused(MPI_Alltoall(both.data(), 1, kInt, kInPlace, 1, kInt, kWorld));
    refused(MPI_Bcast(kInPlace, 1, kInt, self, kWorld));
    EXPECT_EQ(MPI_Barrier(kWorld), kSuccess);
  };
  EXPECT_EXIT(RunRanks(2, program), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace railhead::mpi
