// SPDX-License-Identifier: Apache-2.0
#include "mpi/process.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "mpi/testing/program.h"

namespace railhead::mpi {
namespace {

using ProcessTest = ProgramTest;

// A process's status has 8 bits. An abort must not look like success to Kubernetes.
TEST_F(ProcessTest, AnAbortIsNeverSuccess) {
  for (const auto& [code, status] : {std::array{256, EXIT_FAILURE}, std::array{0, EXIT_FAILURE},
                                     std::array{4, 4}, std::array{-1, 255}}) {
    EXPECT_EXIT(MPI_Abort(kWorld, code), testing::ExitedWithCode(status), "MPI_Abort") << code;
  }
}

}  // namespace
}  // namespace railhead::mpi
