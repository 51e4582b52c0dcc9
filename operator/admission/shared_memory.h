// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_ADMISSION_SHARED_MEMORY_H_
#define RAILHEAD_OPERATOR_ADMISSION_SHARED_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/admission/draft.h"

namespace railhead::op {

// Gives these containers of a pod (FindRdmaContainers) a /dev/shm of this size (a quantity;
// container runtimes make it 64 MiB): an emptyDir in memory, which counts as theirs. A container
// that mounts something at /dev/shm itself keeps that, and so does a pod in the host's IPC
// namespace. InvalidArgument when a list of the pod is none.
absl::Status AddSharedMemory(const std::string& size, const std::vector<std::string>& containers,
                             Draft& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_SHARED_MEMORY_H_
