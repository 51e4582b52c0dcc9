// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/annotations.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace railhead::op {
namespace {

using kube::Find;
using kube::Json;

// The API server refuses objects whose annotations, keys and values together, are larger.
constexpr size_t kMaxAnnotationBytes = 256U << 10U;

bool IsAbsent(const Json* value) { return value == nullptr || value->is_null(); }

}  // namespace

absl::StatusOr<Annotations> ReadAnnotations(const Json& object) {
  Annotations annotations;
  const Json* metadata = Find(object, "metadata");
  if (IsAbsent(metadata)) return annotations;
  if (!metadata->is_object()) return absl::InvalidArgumentError("metadata is not an object");
  const Json* found = Find(*metadata, "annotations");
  if (IsAbsent(found)) return annotations;
  if (!found->is_object()) {
    return absl::InvalidArgumentError("metadata.annotations is not an object");
  }
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) {
      return absl::InvalidArgumentError(absl::StrCat("annotation ", key, " is not a string"));
    }
    annotations[key] = value.get<std::string>();
  }
  return annotations;
}

absl::Status WriteAnnotations(const std::string& pointer, const Annotations& wanted, Draft& draft) {
  const Json* object = draft.At(pointer);
  if (object == nullptr) return absl::InvalidArgumentError(absl::StrCat(pointer, " is missing"));
  const absl::StatusOr<Annotations> before = ReadAnnotations(*object);
  if (!before.ok()) return before.status();
  if (*before == wanted) return absl::OkStatus();
  size_t bytes = 0;
  for (const auto& [key, value] : wanted) bytes += key.size() + value.size();
  if (bytes > kMaxAnnotationBytes) {
    return absl::ResourceExhaustedError("its annotations leave no room for Railhead's");
  }
  if (IsAbsent(draft.At(pointer + "/metadata"))) {
    draft.Add(pointer + "/metadata", {{"annotations", wanted}});
  } else if (IsAbsent(draft.At(pointer + "/metadata/annotations"))) {
    draft.Add(pointer + "/metadata/annotations", wanted);
  } else {
    for (const auto& [key, value] : wanted) {
      const auto old = before->find(key);
      if (old != before->end() && old->second == value) continue;
      draft.Add(absl::StrCat(pointer, "/metadata/annotations/", kube::PointerToken(key)), value);
    }
  }
  return absl::OkStatus();
}

}  // namespace railhead::op
