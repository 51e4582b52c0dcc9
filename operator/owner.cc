// SPDX-License-Identifier: Apache-2.0
#include "operator/owner.h"

#include "kube/elements.h"

namespace railhead::op {

using kube::Json;
using kube::StringAt;

std::optional<Owner> ControllerOf(const Json& object) {
  for (const Json& owner : kube::ElementsAt(object, {"metadata", "ownerReferences"})) {
    const Json* controls = kube::Find(owner, "controller");
    if (controls == nullptr || *controls != true) continue;
    return Owner{StringAt(owner, {"apiVersion"}), StringAt(owner, {"kind"}),
                 StringAt(owner, {"name"}), StringAt(owner, {"uid"})};
  }
  return std::nullopt;
}

}  // namespace railhead::op
