// SPDX-License-Identifier: Apache-2.0
//
// Launcher of an MPIJob. mpirun starts ranks by ssh in the workers, without the variables of the
// workers' containers, so the launcher must forward them. The launcher requests no RDMA itself and
// is unchanged unless its template has this annotation. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_LAUNCHER_H_
#define RAILHEAD_OPERATOR_ADMISSION_LAUNCHER_H_

#include "absl/status/status.h"
#include "kube/json.h"
#include "operator/admission/pod_admission.h"

namespace railhead::op {

// MPI implementation of the launcher: "openmpi", or "hydra" (MPICH, Intel MPI).
inline constexpr char kLauncher[] = "railhead.io/launcher";

bool IsLauncher(const kube::Json& pod);

// Adds the variables that ranks need to the launcher's containers, and the variable that makes
// mpirun forward them: OMPI_MCA_mca_base_env_list or I_MPI_HYDRA_ENV. Assumes that rank 0 runs in
// worker 0. Variables that a container sets itself are kept. Returns InvalidArgument if a field of
// the pod that must be a list is not.
absl::Status PassOnEnvironment(PodAdmission& admission);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_LAUNCHER_H_
