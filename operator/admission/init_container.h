// SPDX-License-Identifier: Apache-2.0
//
// Init containers that the webhook adds to pods: those that copy libraries, and the one that waits
// for the pod's rank. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_INIT_CONTAINER_H_
#define RAILHEAD_OPERATOR_ADMISSION_INIT_CONTAINER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kube/json.h"
#include "operator/objects/draft.h"

namespace railhead::op {

// Returns an init container for a pod of this spec. The pod's quality of service stays the same.
// Limits are minimal for a shell and equal to requests, so a Guaranteed pod keeps its exclusive
// CPUs; they are omitted if the pod's containers set no CPU and memory, or if the pod sets them for
// all. It gets the permissions of the container `served`, and no more.
kube::Json InitContainer(const char* name, const std::string& image, const kube::Json& command,
                         const kube::Json& mount, const kube::Json& served, const kube::Json& spec);

// Inserts those that are not present yet before all other init containers of the pod, in this
// order. This shifts the indices of the pod's own. Returns InvalidArgument if its initContainers is
// not a list.
absl::Status AddInitContainers(const std::vector<kube::Json>& containers, Draft& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_INIT_CONTAINER_H_
