// SPDX-License-Identifier: Apache-2.0
#include "mpi/process.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "mpi/testing/program.h"

namespace railhead::mpi {
namespace {

using ProcessTest = ProgramTest;

int Compared(Communicator* one, Communicator* other) {
  int result = -1;
  EXPECT_EQ(MPI_Comm_compare(one, other, &result), kSuccess);
  return result;
}

// A process's status has 8 bits. An abort must not look like success to Kubernetes.
TEST_F(ProcessTest, AnAbortIsNeverSuccess) {
  for (const auto& [code, status] : {std::array{256, EXIT_FAILURE}, std::array{0, EXIT_FAILURE},
                                     std::array{4, 4}, std::array{-1, 255}}) {
    EXPECT_EXIT(MPI_Abort(kWorld, code), testing::ExitedWithCode(status), "MPI_Abort") << code;
  }
}

// A rank that does not know how many there are must not go on alone.
TEST_F(ProcessTest, ARankOfALauncherIsNoJobOfOne) {
  const auto init = [] {
    setenv("PMIX_RANK", "0", 1);
    StartMpi();
  };
  EXPECT_EXIT(
      init(), [](int status) { return status != 0; }, "PMIX_RANK=0 is set by a launcher");
}

TEST_F(ProcessTest, CommunicatorsAreComparedByTheirRanks) {
  const auto program = [] {
    Communicator* copy = nullptr;
    Communicator* reversed = nullptr;
    Communicator* alone = nullptr;
    const int rank = RankInWorld();
    ASSERT_EQ(MPI_Comm_dup(kWorld, &copy), kSuccess);
    ASSERT_EQ(MPI_Comm_split(copy, 0, -rank, &reversed), kSuccess);
    ASSERT_EQ(MPI_Comm_split(reversed, rank, 0, &alone), kSuccess);
    EXPECT_EQ(Compared(kWorld, kWorld), kIdentical);
    EXPECT_EQ(Compared(copy, kWorld), kCongruent);
    EXPECT_EQ(Compared(copy, reversed), kSimilar);
    EXPECT_EQ(Compared(alone, kWorld), kUnequal);
    EXPECT_EQ(Compared(alone, kSelf), kCongruent);
    for (Communicator* comm : {copy, reversed, alone}) {
      EXPECT_EQ(MPI_Comm_free(&comm), kSuccess);
    }
  };
  EXPECT_EXIT(RunRanks(2, program), testing::ExitedWithCode(0), "");
}

TEST_F(RunningProgramTest, AComparisonWithNoCommunicatorIsAnError) {
  int result = -1;
  EXPECT_EQ(MPI_Comm_compare(&ompi_mpi_comm_null, kWorld, &result), kErrorComm);
  EXPECT_EQ(MPI_Comm_compare(kWorld, nullptr, &result), kErrorComm);
  EXPECT_EQ(MPI_Comm_compare(nullptr, nullptr, &result), kErrorComm);
}

}  // namespace
}  // namespace railhead::mpi
