// SPDX-License-Identifier: Apache-2.0
//
// The world of this process: its rank, the number of ranks, and the variables that they come from.
//
// Several programs may have set variables. The innermost launcher applies, the first of these:
//
//   variables                                    | set by
//   ---------------------------------------------+------------------------------------------------
//   RANK, WORLD_SIZE, with TORCHELASTIC_RUN_ID   | torchrun
//   OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE   | mpirun of Open MPI
//   PMI_RANK, PMI_SIZE                           | mpiexec of MPICH, Intel MPI (Hydra); Flux; srun
//   PMIX_RANK, without a size                    | prterun (PRRTE) and other launchers with PMIx
//   FLUX_TASK_RANK, FLUX_JOB_SIZE                | flux run
//   SLURM_PROCID, SLURM_STEP_NUM_TASKS           | srun
//   RANK, WORLD_SIZE                             | the pod: Railhead's operator, or the pod's spec
//
// The order is that in which programs start each other: resource managers (Slurm, Flux) start
// launchers of MPI, which start torchrun. mpirun starts its daemons on other nodes by srun, so its
// ranks see the variables of the step that runs the daemons; only mpirun's own count ranks.
//
// PMIx passes the rank in the environment, and the size only by a call. srun and Flux set their own
// variables as well, and the namespace names them; without these two, a PMIX_RANK alone is an
// error.
//
// Slurm sets SLURM_PROCID and SLURM_NTASKS for batch scripts, too, but SLURM_STEP_ID only in a step
// that srun has started. A process outside of a step is a job of one rank.
//
// If the pod has another world than the launcher, the launcher's applies. It fails if the pod's is
// larger: otherwise each process could be a separate small job, unnoticed. RAILHEAD_WORLD decides
// in that case. Pure.
#ifndef RAILHEAD_RUNTIME_CONFIG_WORLD_H_
#define RAILHEAD_RUNTIME_CONFIG_WORLD_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/config/launch.h"
#include "runtime/config/lookup.h"

namespace railhead::config {

// Maximum number of ranks; more are an error.
inline constexpr int kMostRanks = 65536;

struct World {
  int rank = 0;
  int size = 1;
  // "PMI_RANK=1 and PMI_SIZE=4 (set by ...)"; for messages.
  std::string source;
  // The pod's variables and the launcher's if they differ, and which apply, for the log; "" if they
  // agree, or if RAILHEAD_WORLD decides.
  std::string note = "";
  // The launcher whose world it is; kPod without one.
  Launcher launcher = Launcher::kPod;
  Launch launch = {};
  std::string rank_variable = "";  // "PMI_RANK"
};

// Returns nullopt if no launcher is known and RANK or WORLD_SIZE is not set. InvalidArgument names
// the variables that are invalid, incomplete or contradict each other, and the fix.
absl::StatusOr<std::optional<World>> FindWorld(Lookup lookup);

// Value of RAILHEAD_WORLD.
enum class WorldChoice { kAuto, kLauncher, kPod };

// Returns "" or the allowed values.
std::string ParseWorldChoice(const std::string& text, WorldChoice& into);

}  // namespace railhead::config

#endif  // RAILHEAD_RUNTIME_CONFIG_WORLD_H_
