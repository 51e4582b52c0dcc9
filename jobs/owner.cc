// SPDX-License-Identifier: Apache-2.0
#include "jobs/owner.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "kube/elements.h"
#include "kube/object_name.h"

namespace railhead::jobs {
namespace {

using kube::Json;
using kube::StringAt;

bool IsNameOrEmpty(absl::string_view text) { return text.empty() || kube::IsObjectName(text); }

// "batch/v1", "v1"
bool IsApi(const std::string& api) {
  const std::vector<absl::string_view> parts = absl::StrSplit(api, '/');
  return parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), IsNameOrEmpty);
}

std::optional<Owner> ReadOwner(const Json& reference) {
  Owner owner = {StringAt(reference, {"apiVersion"}), StringAt(reference, {"kind"}),
                 StringAt(reference, {"name"}), StringAt(reference, {"uid"})};
  const bool valid = IsApi(owner.api) && IsNameOrEmpty(owner.kind) && IsNameOrEmpty(owner.name) &&
                     IsNameOrEmpty(owner.uid);
  return valid ? std::optional(std::move(owner)) : std::nullopt;
}

}  // namespace

std::optional<Owner> ControllerOf(const Json& object) {
  for (const Json& reference : kube::ElementsAt(object, {"metadata", "ownerReferences"})) {
    const Json* controls = kube::Find(reference, "controller");
    if (controls != nullptr && *controls == true) return ReadOwner(reference);
  }
  return std::nullopt;
}

Owner OwnerOf(const Json& object) {
  if (std::optional<Owner> controller = ControllerOf(object)) return *std::move(controller);
  for (const Json& reference : kube::ElementsAt(object, {"metadata", "ownerReferences"})) {
    std::optional<Owner> owner = ReadOwner(reference);
    if (owner && !owner->kind.empty()) return *std::move(owner);
  }
  return {};
}

}  // namespace railhead::jobs
