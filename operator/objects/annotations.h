// SPDX-License-Identifier: Apache-2.0
//
// Annotations of an object under admission, as a map of strings. Pure.
#ifndef RAILHEAD_OPERATOR_OBJECTS_ANNOTATIONS_H_
#define RAILHEAD_OPERATOR_OBJECTS_ANNOTATIONS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kube/json.h"
#include "operator/objects/draft.h"

namespace railhead::op {

using Annotations = std::map<std::string, std::string>;

// Returns the annotations of an object (a pod, or a template); empty if absent. Returns
// InvalidArgument if metadata or an annotation has the wrong type.
absl::StatusOr<Annotations> ReadAnnotations(const kube::Json& object);

// Changes the annotations of the object at `pointer` (empty: the whole draft) to `wanted`, which
// must contain all existing keys. Returns ResourceExhausted if they would exceed the API server's
// limit.
absl::Status WriteAnnotations(const std::string& pointer, const Annotations& wanted, Draft& draft);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OBJECTS_ANNOTATIONS_H_
