// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/lists.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace railhead::op {
namespace {

using kube::Json;
using kube::StringAt;

template <typename Fits>
const Json* FirstThat(const Json* list, const Fits& fits) {
  if (list == nullptr) return nullptr;
  const auto found = std::find_if(list->begin(), list->end(), fits);
  return found == list->end() ? nullptr : &*found;
}

}  // namespace

absl::StatusOr<const Json*> ListAt(const Draft& draft, const std::string& pointer) {
  const Json* list = draft.At(pointer);
  if (list == nullptr || list->is_null()) return nullptr;
  if (!list->is_array()) return absl::InvalidArgumentError(absl::StrCat(pointer, " is not a list"));
  return list;
}

const Json* Named(const Json* list, absl::string_view name) {
  return FirstThat(list, [name](const Json& entry) { return StringAt(entry, {"name"}) == name; });
}

const Json* MountAt(const Json* mounts, absl::string_view folder) {
  return FirstThat(mounts, [folder](const Json& mount) {
    const std::string path = StringAt(mount, {"mountPath"});
    absl::string_view trimmed = path;
    while (absl::ConsumeSuffix(&trimmed, "/")) {
    }
    return trimmed == folder;
  });
}

}  // namespace railhead::op
