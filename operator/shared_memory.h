// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_SHARED_MEMORY_H_
#define RAILHEAD_OPERATOR_SHARED_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kube/json.h"
#include "operator/rdma_containers.h"

namespace railhead::op {

// Appends to the patch of a pod what gives these containers a /dev/shm of this size (a quantity;
// container runtimes make it 64 MiB): an emptyDir in memory. What they put there counts as their
// memory. A container that mounts something at /dev/shm itself keeps that, and so does a pod in the
// host's IPC namespace. InvalidArgument when a list of the pod is none.
absl::Status AddSharedMemory(const kube::Json& pod_spec,
                             const std::vector<RdmaContainer>& containers, const std::string& size,
                             kube::Json& patch, std::vector<std::string>& warnings);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_SHARED_MEMORY_H_
