// SPDX-License-Identifier: Apache-2.0
//
// Admission phases that set containers' variables. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_ENVIRONMENT_H_
#define RAILHEAD_OPERATOR_ADMISSION_ENVIRONMENT_H_

#include "absl/status/status.h"
#include "operator/admission/pod_admission.h"

namespace railhead::op {

// Adds variables to each container that requests RDMA: rank, size and address of its pod in its
// job, if known; names of its pod and node; variables of its settings. They precede the container's
// own, whose $(NAME) references may use them. A variable that the container sets itself is kept and
// added to `kept`. Returns InvalidArgument if a field of the pod that must be a list is not.
absl::Status AddEnvironment(PodAdmission& admission);

// Writes the skipped steps that earlier phases noted to the pod's annotation, and appends a
// variable with its value to each of these containers.
absl::Status AddNotDone(PodAdmission& admission);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_ENVIRONMENT_H_
