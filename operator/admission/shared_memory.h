// SPDX-License-Identifier: Apache-2.0
//
// Admission step that enlarges /dev/shm: ranks of one pod exchange data through it. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_SHARED_MEMORY_H_
#define RAILHEAD_OPERATOR_ADMISSION_SHARED_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/objects/draft.h"

namespace railhead::op {

// Sets the size of /dev/shm (a quantity; default of container runtimes: 64 MiB) in these containers
// (FindRdmaContainers), by an emptyDir in memory, which counts as the containers' memory. A
// container with its own mount at /dev/shm is unchanged, as is a pod in the host's IPC namespace.
// Returns InvalidArgument if a field of the pod that must be a list is not.
absl::Status AddSharedMemory(const std::string& size, const std::vector<std::string>& containers,
                             Draft& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_SHARED_MEMORY_H_
