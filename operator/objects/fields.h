// SPDX-License-Identifier: Apache-2.0
//
// Strict readers of API objects. Each error begins with the path of its field:
// "spec.nccl.trafficClass: ".
#ifndef RAILHEAD_OPERATOR_OBJECTS_FIELDS_H_
#define RAILHEAD_OPERATOR_OBJECTS_FIELDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"

namespace railhead::op {

// Returns InvalidArgument "PATH: WHAT"; "the object WHAT" if `path` is empty.
absl::Status FieldError(absl::string_view path, absl::string_view what);

// Returns "PATH.NAME"; NAME if `path` is empty.
std::string JoinPath(absl::string_view path, absl::string_view name);

// Returns the member; null if it is absent or null, which are equivalent in the API.
const kube::Json* Member(const kube::Json& object, absl::string_view name);

// Returns InvalidArgument if the value is not an object or has a member not in `known`.
absl::Status CheckMembers(const kube::Json& object, absl::string_view path,
                          const std::vector<absl::string_view>& known);

absl::StatusOr<std::string> ReadString(const kube::Json& value, absl::string_view path);
absl::StatusOr<int64_t> ReadInteger(const kube::Json& value, absl::string_view path, int64_t min,
                                    int64_t max);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OBJECTS_FIELDS_H_
