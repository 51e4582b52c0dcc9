// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/gang_gate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "operator/gangs/names.h"
#include "operator/json_patch.h"

namespace railhead::op::gangs {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr size_t kLongestLevel = 63;  // of the parts of a label's key, in which levels stand

// The gang that an object asks for; empty: none.
std::string GangOf(const Json& object) {
  std::string gang = StringAt(object, {"metadata", "labels", kGangLabel});
  return gang == "false" ? "" : gang;
}

std::string Field(absl::string_view annotation) {
  return absl::StrCat("metadata.annotations[", annotation, "]");
}

bool HasOwner(const Json& pod) {
  const Json* owners = FindPath(pod, {"metadata", "ownerReferences"});
  return owners != nullptr && owners->is_array() &&
         std::any_of(owners->begin(), owners->end(), [](const Json& owner) {
           const Json* controls = Find(owner, "controller");
           return controls != nullptr && *controls == true;
         });
}

// What a pod says of other pods' nodes that placement does not look at; empty: nothing.
std::string RuleAboutPods(const Json& pod) {
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const Json* rules =
        FindPath(pod, {"spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"});
    if (rules != nullptr && rules->is_array() && !rules->empty()) {
      return absl::StrCat("spec.affinity.", kind);
    }
  }
  const Json* spread = FindPath(pod, {"spec", "topologySpreadConstraints"});
  if (spread == nullptr || !spread->is_array()) return "";
  const bool hard = std::any_of(spread->begin(), spread->end(), [](const Json& constraint) {
    return StringAt(constraint, {"whenUnsatisfiable"}) != "ScheduleAnyway";
  });
  return hard ? "spec.topologySpreadConstraints" : "";
}

// Why the pod cannot wait for its gang, and what to do; empty: it can.
std::string WhyNoGate(const Json& pod, const std::string& gang, const Annotations& annotations) {
  const auto size = annotations.find(kGangSize);
  if (size == annotations.end()) {
    return absl::StrCat(Field(kGangSize),
                        " is missing; set it to the number of pods, or, if they are a Job's that "
                        "was created while the operator was away, create the Job again");
  }
  int pods = 0;
  if (!absl::SimpleAtoi(size->second, &pods) || pods < 1 || pods > kMostPods) {
    return absl::StrCat(Field(kGangSize), " must be a number of pods from 1 to ", kMostPods);
  }
  if (gang == "true" && !HasOwner(pod)) {
    return absl::StrCat("metadata.labels[", kGangLabel,
                        "] is true, which means the pods of one owner, and this pod has none; "
                        "give the gang a name");
  }
  if (!StringAt(pod, {"spec", "nodeName"}).empty()) {
    return "spec.nodeName names a node already; leave it out";
  }
  if (const std::string rule = RuleAboutPods(pod); !rule.empty()) {
    return absl::StrCat(rule,
                        " is not looked at when a gang is placed; leave it out, or make it a "
                        "preference");
  }
  if (const auto pattern = annotations.find(kPattern);
      pattern != annotations.end() && pattern->second != "ring" && pattern->second != "tree" &&
      pattern->second != "alltoall") {
    return absl::StrCat(Field(kPattern), " must be ring, tree or alltoall");
  }
  for (const char* level : {kRequireLevel, kPreferLevel}) {
    const auto found = annotations.find(level);
    if (found == annotations.end()) continue;
    if (found->second.empty() || found->second.size() > kLongestLevel) {
      return absl::StrCat(Field(level), " must be the name of a level, such as leaf");
    }
  }
  return "";
}

}  // namespace

void AddGate(const Json& pod, const Annotations& annotations, Json& patch,
             std::vector<std::string>& warnings) {
  const Json* gates = FindPath(pod, {"spec", "schedulingGates"});
  const bool has_gates = gates != nullptr && gates->is_array();
  const bool has_ours =
      has_gates && std::any_of(gates->begin(), gates->end(),
                               [](const Json& gate) { return StringAt(gate, {"name"}) == kGate; });
  const std::string gang = GangOf(pod);
  if (gang.empty()) {
    if (has_ours) {
      warnings.push_back(absl::StrCat("railhead: spec.schedulingGates: nobody takes ", kGate,
                                      " away from a pod without the label ", kGangLabel,
                                      "; leave it out"));
    }
    return;
  }
  const std::string why = WhyNoGate(pod, gang, annotations);
  if (!why.empty()) {
    warnings.push_back(absl::StrCat("railhead: the pod does not wait for its gang: ", why));
    return;
  }
  if (has_ours) return;
  Json gate = {{"name", kGate}};
  if (has_gates) {
    patch.push_back(AddOperation("/spec/schedulingGates/-", std::move(gate)));
  } else {
    patch.push_back(AddOperation("/spec/schedulingGates", Json::array({std::move(gate)})));
  }
}

void StampSize(const Json& job, int parallelism, Annotations& annotations,
               std::vector<std::string>& warnings) {
  const Json* pod_template = FindPath(job, {"spec", "template"});
  if (GangOf(job).empty() && (pod_template == nullptr || GangOf(*pod_template).empty())) return;
  const auto own = annotations.find(kGangSize);
  if (own != annotations.end() && own->second != absl::StrCat(parallelism)) {
    warnings.push_back(absl::StrCat("railhead: spec.template.", Field(kGangSize),
                                    " is not spec.parallelism, which is ", parallelism,
                                    "; leave it out"));
  }
  if (parallelism < 1) {
    warnings.emplace_back(
        "railhead: its pods do not wait for each other: spec.parallelism is 0, so the gang's size "
        "is not known; to pause a Job set spec.suspend instead");
    return;
  }
  annotations.emplace(kGangSize, absl::StrCat(parallelism));
}

void AddLabel(const Json& job, Json& patch) {
  const Json* pod_template = FindPath(job, {"spec", "template"});
  const std::string gang = GangOf(job);
  if (gang.empty() || pod_template == nullptr) return;
  const Json* labels = FindPath(*pod_template, {"metadata", "labels"});
  if (labels == nullptr || labels->is_null()) {
    patch.push_back(AddOperation("/spec/template/metadata/labels", {{kGangLabel, gang}}));
  } else if (labels->is_object() && !labels->contains(kGangLabel)) {
    patch.push_back(AddOperation(
        absl::StrCat("/spec/template/metadata/labels/", kube::PointerToken(kGangLabel)), gang));
  }
}

}  // namespace railhead::op::gangs
