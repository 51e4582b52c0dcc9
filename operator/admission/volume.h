// SPDX-License-Identifier: Apache-2.0
//
// Volumes that admission adds to pods: for libraries, rank files and /dev/shm.
#ifndef RAILHEAD_OPERATOR_ADMISSION_VOLUME_H_
#define RAILHEAD_OPERATOR_ADMISSION_VOLUME_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kube/json.h"
#include "operator/objects/draft.h"

namespace railhead::op {

// Adds a volume to a pod, unless it has one of that name, and the mount to each list of
// volumeMounts at these JSON Pointers. Returns InvalidArgument if one of them is not a list. Pure.
absl::Status AddVolume(const kube::Json& volume, const kube::Json& mount,
                       const std::vector<std::string>& lists, Draft& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_VOLUME_H_
