// SPDX-License-Identifier: Apache-2.0
//
// Libraries that a pod's own images do not have: an init container copies them out of an image of
// their own into a volume, which the pod's containers see.
#ifndef RAILHEAD_OPERATOR_ADMISSION_LIBRARIES_H_
#define RAILHEAD_OPERATOR_ADMISSION_LIBRARIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/json.h"
#include "operator/admission/draft.h"
#include "operator/profiles/injection.h"

namespace railhead::op {

// Adds to a pod the volume and its mount in these containers (FindRdmaContainers). Returns the init
// containers, which are to run before all others, as the user that the first of those containers
// runs as. Leaves existing parts of the injection alone. A pod with a volume of that name, or a
// container with another mount there, keeps it, with a warning. InvalidArgument when a list of the
// pod is none.
absl::StatusOr<std::vector<kube::Json>> AddLibraries(const Injection& injection,
                                                     const std::vector<std::string>& containers,
                                                     Draft& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_LIBRARIES_H_
