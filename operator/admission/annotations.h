// SPDX-License-Identifier: Apache-2.0
//
// The annotations of an object under admission, as a map of texts. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_ANNOTATIONS_H_
#define RAILHEAD_OPERATOR_ADMISSION_ANNOTATIONS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kube/json.h"
#include "operator/admission/draft.h"

namespace railhead::op {

using Annotations = std::map<std::string, std::string>;

// The annotations of an object (a pod, or a template). Absent ones are empty. InvalidArgument when
// metadata or an annotation is not what Kubernetes says it is.
absl::StatusOr<Annotations> ReadAnnotations(const kube::Json& object);

// Edits the annotations of the object at `pointer` (empty: the whole draft) to `wanted`, which has
// all keys that are there. ResourceExhausted when they would be larger than the API server takes.
absl::Status WriteAnnotations(const std::string& pointer, const Annotations& wanted, Draft& draft);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_ANNOTATIONS_H_
