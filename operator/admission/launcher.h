// SPDX-License-Identifier: Apache-2.0
//
// The launcher of an MPIJob. mpirun starts ranks by ssh in the workers, where they do not see the
// variables of the workers' containers, so the launcher has to pass on what they need. It asks for
// no RDMA itself and is left alone unless its template has this annotation. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_LAUNCHER_H_
#define RAILHEAD_OPERATOR_ADMISSION_LAUNCHER_H_

#include "absl/status/status.h"
#include "kube/json.h"
#include "operator/admission/pod_admission.h"

namespace railhead::op {

// "openmpi", or "hydra" (MPICH, Intel MPI): whose mpirun it is.
inline constexpr char kLauncher[] = "railhead.io/launcher";

bool IsLauncher(const kube::Json& pod);

// Gives the launcher's containers the variables that ranks need, and tells mpirun by another
// variable to pass them on: OMPI_MCA_mca_base_env_list or I_MPI_HYDRA_ENV. Rank 0 is taken to be in
// worker 0. What a container sets itself stays. InvalidArgument when a list of the pod is none.
absl::Status PassOnEnvironment(PodAdmission& admission);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_LAUNCHER_H_
