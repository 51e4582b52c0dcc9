// SPDX-License-Identifier: Apache-2.0
//
// Libraries that a pod's own images do not have: an init container copies them out of an image of
// their own into a volume, which the pod's containers see.
#ifndef RAILHEAD_OPERATOR_ADMISSION_LIBRARIES_H_
#define RAILHEAD_OPERATOR_ADMISSION_LIBRARIES_H_

#include "absl/status/status.h"
#include "operator/admission/draft.h"
#include "operator/profiles/injection.h"
#include "operator/rdma_resources.h"

namespace railhead::op {

// Adds to a pod the volume, its mount in the containers that ask for RDMA, and the init
// containers, which run before all others, as the user that the first of those containers runs as.
// What is there already is left alone. A pod with a volume of that name, or a container with
// another mount there, keeps it, with a warning. InvalidArgument when a list of the pod is none.
absl::Status AddLibraries(const Injection& injection, const RdmaResources& rdma, Draft& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_LIBRARIES_H_
