// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/owner.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "kube/elements.h"
#include "operator/objects/object_name.h"

namespace railhead::op {

using kube::Json;
using kube::StringAt;

namespace {

bool IsNameOrEmpty(absl::string_view text) { return text.empty() || IsObjectName(text); }

// "batch/v1", "v1"
bool IsApi(const std::string& api) {
  const std::vector<absl::string_view> parts = absl::StrSplit(api, '/');
  return parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), IsNameOrEmpty);
}

}  // namespace

std::optional<Owner> ControllerOf(const Json& object) {
  for (const Json& owner : kube::ElementsAt(object, {"metadata", "ownerReferences"})) {
    const Json* controls = kube::Find(owner, "controller");
    if (controls == nullptr || *controls != true) continue;
    Owner read = {StringAt(owner, {"apiVersion"}), StringAt(owner, {"kind"}),
                  StringAt(owner, {"name"}), StringAt(owner, {"uid"})};
    if (!IsApi(read.api) || !IsNameOrEmpty(read.kind) || !IsNameOrEmpty(read.name) ||
        !IsNameOrEmpty(read.uid)) {
      return std::nullopt;
    }
    return read;
  }
  return std::nullopt;
}

}  // namespace railhead::op
