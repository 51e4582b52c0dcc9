// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/fields.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/document_error.h"

namespace railhead::op {

using kube::Json;

absl::Status FieldError(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path.empty() ? "the object" : path, path.empty() ? " " : ": ", what));
}

std::string JoinPath(absl::string_view path, absl::string_view name) {
  return path.empty() ? std::string(name) : absl::StrCat(path, ".", name);
}

const Json* Member(const Json& object, absl::string_view name) {
  const Json* member = kube::Find(object, name);
  return member == nullptr || member->is_null() ? nullptr : member;
}

absl::Status CheckMembers(const Json& object, absl::string_view path,
                          const std::vector<absl::string_view>& known) {
  if (!object.is_object()) return FieldError(path, "must be an object with fields");
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), absl::string_view(name)) == known.end()) {
      return FieldError(JoinPath(path, ShownText(name)),
                        UnknownField(name, {known.begin(), known.end()}));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadString(const Json& value, absl::string_view path) {
  if (!value.is_string()) return FieldError(path, "must be a string; put it in quotes");
  const auto& text = value.get_ref<const std::string&>();
  if (text.find('\0') != std::string::npos) return FieldError(path, "must not have a zero byte");
  return text;
}

absl::StatusOr<int64_t> ReadInteger(const Json& value, absl::string_view path, int64_t min,
                                    int64_t max) {
  if (!value.is_number_integer() || value < min || value > max) {
    return FieldError(path, absl::StrCat("must be a whole number from ", min, " to ", max));
  }
  return value.get<int64_t>();
}

}  // namespace railhead::op
