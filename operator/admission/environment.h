// SPDX-License-Identifier: Apache-2.0
//
// The phases of admission that give containers their variables. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_ENVIRONMENT_H_
#define RAILHEAD_OPERATOR_ADMISSION_ENVIRONMENT_H_

#include "absl/status/status.h"
#include "operator/admission/pod_admission.h"

namespace railhead::op {

// Gives each container that asks for RDMA the rank, size and address of its pod in its job, where
// they are known, the name of its pod and node, and the variables of its settings. Ours go before
// the container's own, whose $(NAME) references may then use them. A variable that the container
// sets itself stays, and is noted in `kept`. InvalidArgument when a list of the pod is none.
absl::Status AddEnvironment(PodAdmission& admission);

// Puts what the phases before have noted as not done into the pod's annotation, and gives each of
// these containers the annotation as a variable, after all others.
absl::Status AddNotDone(PodAdmission& admission);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_ENVIRONMENT_H_
