// SPDX-License-Identifier: Apache-2.0
//
// Reading objects of the API strictly: every refusal begins with the path of its field, such as
// "spec.nccl.trafficClass: ".
#ifndef RAILHEAD_OPERATOR_FIELDS_H_
#define RAILHEAD_OPERATOR_FIELDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"

namespace railhead::op {

// InvalidArgument "PATH: WHAT", or "the object WHAT" where `path` is empty.
absl::Status FieldError(absl::string_view path, absl::string_view what);

// "SPEC.NAME"; NAME alone where `path` is empty.
std::string JoinPath(absl::string_view path, absl::string_view name);

// The member, or null when it is absent or null, which the API means the same by.
const kube::Json* Member(const kube::Json& object, absl::string_view name);

// Refuses what is no object, and members of other names than these.
absl::Status CheckMembers(const kube::Json& object, absl::string_view path,
                          const std::vector<absl::string_view>& known);

absl::StatusOr<std::string> ReadString(const kube::Json& value, absl::string_view path);
absl::StatusOr<int64_t> ReadInteger(const kube::Json& value, absl::string_view path, int64_t min,
                                    int64_t max);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_FIELDS_H_
