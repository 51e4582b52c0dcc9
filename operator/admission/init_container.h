// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_ADMISSION_INIT_CONTAINER_H_
#define RAILHEAD_OPERATOR_ADMISSION_INIT_CONTAINER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kube/json.h"
#include "operator/admission/draft.h"

namespace railhead::op {

// An init container with as little as a shell needs, and with limits that are its requests: a pod
// that was Guaranteed stays so, and keeps its own CPUs. What is allowed to the container `served`,
// for which it is, is allowed to it, and nothing more.
kube::Json InitContainer(const char* name, const std::string& image, const kube::Json& command,
                         const kube::Json& mount, const kube::Json& served);

// Puts those that are not there yet before all others of the pod, in this order. It moves the pod's
// own. InvalidArgument if its list is none.
absl::Status AddInitContainers(const std::vector<kube::Json>& containers, Draft& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_INIT_CONTAINER_H_
