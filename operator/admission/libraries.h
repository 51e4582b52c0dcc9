// SPDX-License-Identifier: Apache-2.0
//
// Libraries that a pod's own images lack: an init container copies them from a separate image to a
// volume that is mounted in the pod's containers.
#ifndef RAILHEAD_OPERATOR_ADMISSION_LIBRARIES_H_
#define RAILHEAD_OPERATOR_ADMISSION_LIBRARIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/json.h"
#include "operator/objects/draft.h"
#include "operator/profiles/injection.h"

namespace railhead::op {

// Adds the volume and its mounts in these containers (FindRdmaContainers). Returns the init
// containers, which must run before all others; they run as the user of the first of those
// containers. Keeps parts that are present already. If the pod has another volume of that name, or
// a container another mount at that path, these are kept, with a warning. Returns InvalidArgument
// if a field of the pod that must be a list is not.
absl::StatusOr<std::vector<kube::Json>> AddLibraries(const Injection& injection,
                                                     const std::vector<std::string>& containers,
                                                     Draft& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_LIBRARIES_H_
