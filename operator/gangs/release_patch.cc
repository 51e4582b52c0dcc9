// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/release_patch.h"

#include "absl/strings/str_cat.h"
#include "operator/gangs/names.h"
#include "operator/json_patch.h"

namespace railhead::op::gangs {

using kube::Json;

Json ReleasePatch(const Assignment& assignment, const std::string& placement) {
  const Membership& member = *assignment.pod->member;
  const std::string gate = absl::StrCat("/spec/schedulingGates/", member.gate.value_or(0));
  const auto annotation = [](const char* name, std::string value) {
    return AddOperation(absl::StrCat("/metadata/annotations/", kube::PointerToken(name)),
                        std::move(value));
  };
  Json patch = Json::array();
  patch.push_back({{"op", "test"}, {"path", "/metadata/uid"}, {"value", assignment.pod->uid}});
  patch.push_back({{"op", "test"}, {"path", gate}, {"value", {{"name", kGate}}}});
  patch.push_back({{"op", "remove"}, {"path", gate}});
  if (member.has_selector) {
    patch.push_back(AddOperation(absl::StrCat("/spec/nodeSelector/", kube::PointerToken(kHostname)),
                                 assignment.hostname));
  } else {
    patch.push_back(AddOperation("/spec/nodeSelector", {{kHostname, assignment.hostname}}));
  }
  patch.push_back(annotation(kRank, absl::StrCat(assignment.rank)));
  patch.push_back(annotation(kPlacement, placement));
  return patch;
}

}  // namespace railhead::op::gangs
