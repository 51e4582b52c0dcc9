// SPDX-License-Identifier: Apache-2.0
//
// Launcher of an MPIJob, or of a TrainJob with an MPI runtime. mpirun starts ranks by ssh in other
// pods, without the variables of their containers, so the launcher must forward them. It does so if
// its template has the annotation kLauncher (jobs/labels.h). A launcher that requests no RDMA is
// otherwise unchanged. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_LAUNCHER_H_
#define RAILHEAD_OPERATOR_ADMISSION_LAUNCHER_H_

#include "absl/status/status.h"
#include "kube/json.h"
#include "operator/admission/pod_admission.h"

namespace railhead::op {

bool IsLauncher(const kube::Json& pod);

// Phase: adds the variables that ranks need to the containers of a launcher, and the variable that
// makes mpirun forward them: OMPI_MCA_mca_base_env_list or I_MPI_HYDRA_ENV. Rank 0 runs in the
// launcher if that requests RDMA (runLauncherAsWorker, runLauncherAsNode), else in the first other
// pod. Variables that a container sets itself are kept. Returns InvalidArgument if a field of the
// pod that must be a list is not.
absl::Status PassOnEnvironment(PodAdmission& admission);

// Does the same for a launcher that requests no RDMA, for which no other phase runs.
absl::Status AdmitLauncher(PodAdmission& admission);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_LAUNCHER_H_
