// SPDX-License-Identifier: Apache-2.0
//
// Finds the containers of a pod that request RDMA devices. Pure. Used by admission and diagnosis.
#ifndef RAILHEAD_OPERATOR_OBJECTS_RDMA_CONTAINERS_H_
#define RAILHEAD_OPERATOR_OBJECTS_RDMA_CONTAINERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/json.h"
#include "operator/objects/rdma_resources.h"

namespace railhead::op {

// Returns the containers of a pod that request RDMA devices, as JSON Pointers below its spec
// ("/containers/0"): containers and init containers (including sidecars) with a non-zero quantity
// in limits or requests. Returns InvalidArgument if a field that must be a list is not.
absl::StatusOr<std::vector<std::string>> FindRdmaContainers(const kube::Json& pod_spec,
                                                            const RdmaResources& rdma);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OBJECTS_RDMA_CONTAINERS_H_
