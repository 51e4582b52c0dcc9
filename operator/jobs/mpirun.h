// SPDX-License-Identifier: Apache-2.0
//
// Pods whose ranks mpirun starts, whatever their controller: a launcher, which runs mpirun, and the
// pods in which it starts ranks by ssh. Ranks of the pods themselves would contradict mpirun's.
// Pure. The chart's admission policy has the same rule (_helpers.tpl, railhead.startedByMpirun).
#ifndef RAILHEAD_OPERATOR_JOBS_MPIRUN_H_
#define RAILHEAD_OPERATOR_JOBS_MPIRUN_H_

#include "kube/json.h"

namespace railhead::op {

// Annotation of a launcher's template: "openmpi", or "hydra" (MPICH, Intel MPI).
inline constexpr char kLauncher[] = "railhead.io/launcher";

// Returns whether the spec, of a pod or of its template, shows one of:
//  - a volume mpi-ssh-auth or mpi-hostfile, as Kubeflow Trainer adds them for an MPI runtime;
//  - a variable that names mpirun's list of hosts;
//  - a first container that runs mpirun, or sshd.
bool IsStartedByMpirun(const kube::Json& spec);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_JOBS_MPIRUN_H_
