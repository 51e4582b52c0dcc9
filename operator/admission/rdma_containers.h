// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_ADMISSION_RDMA_CONTAINERS_H_
#define RAILHEAD_OPERATOR_ADMISSION_RDMA_CONTAINERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/json.h"
#include "operator/rdma_resources.h"

namespace railhead::op {

// The containers of a pod that ask for RDMA devices, as JSON Pointers below its spec
// ("/containers/0"): init containers (sidecars are some of them) and containers with a non-zero
// quantity in limits or requests. InvalidArgument for a list that is none.
absl::StatusOr<std::vector<std::string>> FindRdmaContainers(const kube::Json& pod_spec,
                                                            const RdmaResources& rdma);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_RDMA_CONTAINERS_H_
