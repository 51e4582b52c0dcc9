// SPDX-License-Identifier: Apache-2.0
//
// Variables by which MPI_Init knows that this process is one of several; librailhead finds its rank
// and their number (runtime/config/world.h).
#ifndef RAILHEAD_MPI_LAUNCHER_VARIABLES_H_
#define RAILHEAD_MPI_LAUNCHER_VARIABLES_H_

#include <array>

namespace railhead::mpi {

inline constexpr std::array kLauncherVariables = {
    "RANK",      "WORLD_SIZE",  "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",  "PMI_SIZE",    "FLUX_TASK_RANK",       "FLUX_JOB_SIZE",
    "PMIX_RANK", "SLURM_NTASKS"};

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_LAUNCHER_VARIABLES_H_
