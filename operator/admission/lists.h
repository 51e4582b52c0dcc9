// SPDX-License-Identifier: Apache-2.0
//
// Access to lists of a pod under admission. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_LISTS_H_
#define RAILHEAD_OPERATOR_ADMISSION_LISTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"
#include "operator/objects/draft.h"

namespace railhead::op {

// Returns the list at a JSON Pointer; null if it is absent or null. Returns InvalidArgument if the
// value is not a list.
absl::StatusOr<const kube::Json*> ListAt(const Draft& draft, const std::string& pointer);

// Returns the entry with that name; null if there is none or the list is null.
const kube::Json* Named(const kube::Json* list, absl::string_view name);

// Returns the entry of a list of volumeMounts whose mountPath is this directory, with or without
// trailing slashes; null if there is none or the list is null.
const kube::Json* MountAt(const kube::Json* mounts, absl::string_view folder);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_LISTS_H_
