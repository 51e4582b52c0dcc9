// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/release_patch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/objects/json_patch.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {

using kube::Json;

namespace {

std::string GateOf(const StoredPod& pod) {
  return absl::StrCat("/spec/schedulingGates/", pod.member->gate.value_or(0));
}

Json IsThisPod(const StoredPod& pod) {
  Json patch = Json::array();
  patch.push_back({{"op", "test"}, {"path", "/metadata/uid"}, {"value", pod.uid}});
  return patch;
}

// Holds for exactly this pod as long as it has our gate.
Json IsGated(const StoredPod& pod) {
  Json patch = IsThisPod(pod);
  patch.push_back({{"op", "test"}, {"path", GateOf(pod)}, {"value", {{"name", kGate}}}});
  return patch;
}

std::string PathOf(const char* annotation) {
  return absl::StrCat("/metadata/annotations/", kube::PointerToken(annotation));
}

Json Annotation(const char* name, std::string value) {
  return AddOperation(PathOf(name), std::move(value));
}

void AddRank(const Assignment& assignment, Json& patch) {
  if (assignment.rank) patch.push_back(Annotation(kRank, absl::StrCat(*assignment.rank)));
  if (!assignment.master.empty()) patch.push_back(Annotation(kMaster, assignment.master));
}

}  // namespace

Json ReleasePatch(const Assignment& assignment, const std::string& placement) {
  const Membership& member = *assignment.pod->member;
  Json patch = UngatePatch(assignment);
  if (member.has_selector) {
    patch.push_back(AddOperation(absl::StrCat("/spec/nodeSelector/", kube::PointerToken(kHostname)),
                                 assignment.hostname));
  } else {
    patch.push_back(AddOperation("/spec/nodeSelector", {{kHostname, assignment.hostname}}));
  }
  patch.push_back(Annotation(kPlacement, placement));
  return patch;
}

Json UngatePatch(const Assignment& assignment) {
  Json patch = IsGated(*assignment.pod);
  patch.push_back({{"op", "remove"}, {"path", GateOf(*assignment.pod)}});
  AddRank(assignment, patch);
  return patch;
}

Json RankPatch(const Assignment& assignment) {
  Json patch = IsThisPod(*assignment.pod);
  patch.push_back({{"op", "test"}, {"path", PathOf(kRank)}, {"value", ""}});
  AddRank(assignment, patch);
  return patch;
}

Json FailurePatch(const StoredPod& pod, const std::string& why) {
  Json patch = IsGated(pod);
  patch.push_back(AddOperation("/status/phase", "Failed"));
  patch.push_back(AddOperation("/status/reason", "GangTimedOut"));
  patch.push_back(AddOperation("/status/message", why));
  return patch;
}

}  // namespace railhead::op::gangs
