// SPDX-License-Identifier: Apache-2.0
//
// Pods whose ranks mpirun starts, whatever their controller: a launcher, which runs mpirun, and the
// pods in which it starts ranks by ssh. Ranks of the pods themselves would contradict mpirun's.
// Pure. The chart's admission policy has the same rule (_helpers.tpl, railhead.startedByMpirun).
#ifndef RAILHEAD_JOBS_MPIRUN_H_
#define RAILHEAD_JOBS_MPIRUN_H_

#include <optional>

#include "jobs/kind.h"
#include "kube/json.h"

namespace railhead::jobs {

// Returns whether the spec, of a pod or of its template, shows one of:
//  - a volume mpi-ssh-auth or mpi-hostfile, as Kubeflow Trainer adds them for an MPI runtime;
//  - a variable that names mpirun's list of hosts;
//  - a first container that runs mpirun, or sshd.
bool IsStartedByMpirun(const kube::Json& spec);

// Returns the job of a pod whose ranks mpirun starts, if its kind has launchers; else nullopt.
std::optional<Job> JobOfMpirun(const kube::Json& pod);

// Returns the rank of a pod in which mpirun starts ranks: none. Nothing is missing in a launcher
// that passes variables on (railhead.io/launcher).
extern const Cause kByMpirun;
Rank RankByMpirun(const Pod& pod);

}  // namespace railhead::jobs

#endif  // RAILHEAD_JOBS_MPIRUN_H_
