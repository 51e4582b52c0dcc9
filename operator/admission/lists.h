// SPDX-License-Identifier: Apache-2.0
//
// Lists of a pod under admission: where they are, and what is in them. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_LISTS_H_
#define RAILHEAD_OPERATOR_ADMISSION_LISTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"
#include "operator/admission/draft.h"

namespace railhead::op {

// The list at a JSON Pointer; null where it is absent or null. InvalidArgument when something else
// is there.
absl::StatusOr<const kube::Json*> ListAt(const Draft& draft, const std::string& pointer);

// The entry of that name; null when there is none, or no list (null).
const kube::Json* Named(const kube::Json* list, absl::string_view name);

// The entry of a list of volumeMounts whose mountPath is this folder, with slashes at its end or
// without; null when there is none, or no list (null).
const kube::Json* MountAt(const kube::Json* mounts, absl::string_view folder);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_LISTS_H_
