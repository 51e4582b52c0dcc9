// SPDX-License-Identifier: Apache-2.0
//
// Launch: data of a launcher's variables about the job, besides its ranks (world.h): its name, and
// how its ranks can find each other. Pure.
//
//   launcher               | name of the job                    | all ranks are on one host if
//   -----------------------+------------------------------------+-------------------------------
//   torchrun               | TORCHELASTIC_RUN_ID                | (it sets MASTER_ADDR)
//   mpirun of Open MPI     | PMIX_NAMESPACE,                    | OMPI_COMM_WORLD_LOCAL_SIZE is
//                          | OMPI_MCA_ess_base_jobid            | the size
//   mpiexec (Hydra)        | -                                  | MPI_LOCALNRANKS is the size
//   flux run               | FLUX_JOB_ID                        | FLUX_JOB_NNODES=1
//   srun                   | SLURM_JOB_ID and SLURM_STEP_ID     | SLURM_STEP_NUM_NODES=1
//
// PMI_RANK and PMI_SIZE are Flux's or srun's if these count the same ranks, else Hydra's, which
// names no job.
#ifndef RAILHEAD_RUNTIME_CONFIG_LAUNCH_H_
#define RAILHEAD_RUNTIME_CONFIG_LAUNCH_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/config/lookup.h"

namespace railhead::config {

enum class Launcher : uint8_t { kPod, kTorchrun, kOpenMpi, kPmi, kFlux, kSlurm };

struct Launch {
  // Equal on all ranks of the job, different for every other job: "mpirun of Open MPI
  // (PMIX_NAMESPACE=12)", for comparison and messages; "" if the launcher sets none.
  std::string name;
  // True if all ranks are on this host, by the launcher's count.
  bool one_host = false;
  // Adds to `name` what distinguishes it from all other launches on this host, for example in other
  // containers. Not for messages.
  std::string on_host;
  // Key of this gang in the store of torchrun's agent, which listens at MASTER_PORT; "" if there is
  // no such store.
  std::string store_key;
};

// Maximum size of Launch::name.
inline constexpr size_t kLongestLaunchName = 300;

// Returns the launch of a world of this rank and size, which this launcher has started.
Launch FindLaunch(Launcher launcher, int rank, int size, Lookup lookup);

}  // namespace railhead::config

#endif  // RAILHEAD_RUNTIME_CONFIG_LAUNCH_H_
