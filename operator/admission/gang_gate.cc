// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/gang_gate.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "jobs/job.h"
#include "jobs/job_set.h"
#include "kube/elements.h"
#include "operator/admission/lists.h"
#include "operator/objects/names.h"
#include "operator/objects/pod_bounds.h"
#include "operator/objects/pod_rules.h"
#include "operator/objects/rdma_resources.h"

namespace railhead::op {
namespace {

using gangs::kGangLabel;
using gangs::kGangSize;
using gangs::kGate;
using gangs::kPreferLevel;
using gangs::kPreferWait;
using gangs::kRequireLevel;
using gangs::kTimeout;
using gangs::kTimeoutPolicy;
using jobs::IsInSchedulingGroup;
using jobs::Job;
using jobs::JobOf;

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr size_t kLongestLevel = 63;  // of the parts of a label's key, in which levels stand

// Returns the gang that an object requests; empty if there is no gang.
std::string GangOf(const Json& object) {
  std::string gang = StringAt(object, {"metadata", "labels", kGangLabel});
  return gang == "false" ? "" : gang;
}

// As above, but "true" if the object has no label and its kind is one of `kinds`.
std::string GangOf(const Json& object, const std::string& kind, const GangKinds& kinds) {
  const Json* label = FindPath(object, {"metadata", "labels", kGangLabel});
  return label == nullptr && kinds.contains(kind) ? "true" : GangOf(object);
}

std::string KindOfPod(const Json& pod) {
  const std::optional<Job> job = JobOf(pod);
  return job ? std::string(job->kind->name) : "";
}

std::string KindOfJob(const Json& job) {
  const std::string kind = KindOfPod(job);
  return kind.empty() ? "Job" : kind;
}

std::string AnnotationField(absl::string_view annotation) {
  return absl::StrCat("metadata.annotations[", annotation, "]");
}

// Adds the gang label to the object at `pointer` if it has no such label. Leaves an object with
// invalid metadata or labels unchanged.
void AddLabelTo(const std::string& pointer, const std::string& gang, Draft& draft) {
  const Json* metadata = draft.At(pointer + "/metadata");
  if (metadata == nullptr || !metadata->is_object()) {
    if (metadata == nullptr || metadata->is_null()) {
      draft.Add(pointer + "/metadata", {{"labels", {{kGangLabel, gang}}}});
    }
    return;
  }
  const Json* labels = Find(*metadata, "labels");
  if (labels == nullptr || labels->is_null()) {
    draft.Add(pointer + "/metadata/labels", {{kGangLabel, gang}});
  } else if (labels->is_object() && !labels->contains(kGangLabel)) {
    draft.Add(absl::StrCat(pointer, "/metadata/labels/", kube::PointerToken(kGangLabel)), gang);
  }
}

// Why a pod does not wait for its gang; nullopt: it does.
struct NoWait {
  Cause cause;
  std::vector<std::string> arguments = {};
};
using MaybeNoWait = std::optional<NoWait>;

// Returns the error in the pod's annotations about waiting.
MaybeNoWait WhyNoWait(const Annotations& annotations) {
  for (const char* wait : {kPreferWait, kTimeout}) {
    const auto found = annotations.find(wait);
    absl::Duration duration;
    if (found != annotations.end() &&
        (!absl::ParseDuration(found->second, &duration) || duration <= absl::ZeroDuration())) {
      return NoWait{Cause::kDuration, {wait}};
    }
  }
  if (annotations.contains(kPreferWait) && !annotations.contains(kPreferLevel)) {
    return NoWait{Cause::kWaitWithoutLevel};
  }
  const auto policy = annotations.find(kTimeoutPolicy);
  if (annotations.contains(kTimeout) != (policy != annotations.end()) ||
      (policy != annotations.end() && policy->second != "release" && policy->second != "fail")) {
    return NoWait{Cause::kTimeoutPolicy};
  }
  return std::nullopt;
}

// Returns why the pods of the pod's gang are unknown.
MaybeNoWait WhyNoGang(const Json& pod, const std::string& gang, const Annotations& annotations) {
  const bool native = IsInSchedulingGroup(pod);
  const auto size = annotations.find(kGangSize);
  if (size == annotations.end()) {
    return NoWait{native ? Cause::kNativeNoGangSize : Cause::kNoGangSize};
  }
  int pods = 0;
  if (!absl::SimpleAtoi(size->second, &pods) || pods < 1 || pods > gangs::kMostPods) {
    return NoWait{native ? Cause::kNativeGangSizeNoNumber : Cause::kGangSizeNoNumber};
  }
  if (gang == "true" && !jobs::ControllerOf(pod) && !JobOf(pod)) {
    return NoWait{native ? Cause::kNativeTrueWithoutOwner : Cause::kTrueWithoutOwner};
  }
  return std::nullopt;
}

// Returns the first resource that the pod requests by device class; "" if there is none.
std::string DeviceClassAskedFor(const Json& pod) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : kube::ElementsAt(pod, {"spec", list})) {
      for (const char* amounts : {"limits", "requests"}) {
        const Json* asked = FindPath(container, {"resources", amounts});
        if (asked == nullptr || !asked->is_object()) continue;
        for (const auto& [name, amount] : asked->items()) {
          if (absl::StartsWith(name, kDeviceClassDomain)) return name;
        }
      }
    }
  }
  return "";
}

// Returns why the pod cannot wait for its gang.
MaybeNoWait WhyNoGate(const Json& pod, const std::string& gang, const Annotations& annotations) {
  if (MaybeNoWait why = WhyNoGang(pod, gang, annotations)) return why;
  if (const std::string scheduler = StringAt(pod, {"spec", "schedulerName"});
      !scheduler.empty() && scheduler != "default-scheduler") {
    return NoWait{Cause::kOtherScheduler, {scheduler}};
  }
  if (!StringAt(pod, {"spec", "nodeName"}).empty()) return NoWait{Cause::kNodeNamed};
  if (const std::string exclusive = jobs::ExclusiveTopologyOf(pod); !exclusive.empty()) {
    return NoWait{Cause::kExclusiveTopology, {exclusive}};
  }
  if (const std::string device = DeviceClassAskedFor(pod); !device.empty()) {
    return NoWait{Cause::kDeviceClass, {device}};
  }
  if (const gangs::PodExcess excess = gangs::ExcessOf(pod); !excess.field.empty()) {
    return NoWait{Cause::kTooLarge,
                  {excess.field, absl::StrCat(excess.bytes), absl::StrCat(excess.most)}};
  }
  if (const std::string rule = gangs::RuleAboutPods(pod); !rule.empty()) {
    return NoWait{Cause::kRuleAboutPods, {rule}};
  }
  if (const auto pattern = annotations.find(gangs::kPattern);
      pattern != annotations.end() && pattern->second != "ring" && pattern->second != "tree" &&
      pattern->second != "alltoall") {
    return NoWait{Cause::kPattern};
  }
  if (const auto same = annotations.find(gangs::kSameRails);
      same != annotations.end() && same->second != "true" && same->second != "false") {
    return NoWait{Cause::kSameRails};
  }
  for (const char* level : {kRequireLevel, kPreferLevel}) {
    const auto found = annotations.find(level);
    if (found == annotations.end()) continue;
    if (found->second.empty() || found->second.size() > kLongestLevel) {
      return NoWait{Cause::kLevel, {level}};
    }
  }
  return WhyNoWait(annotations);
}

// Returns which request of a pod with spec.schedulingGroup is not served.
MaybeNoWait WhatTheSchedulerLeavesOut(const Json& pod, const std::string& gang,
                                      const Annotations& annotations) {
  if (MaybeNoWait why = WhyNoGang(pod, gang, annotations)) return why;
  for (const char* asked : {kRequireLevel, kPreferLevel, kPreferWait, kTimeout, kTimeoutPolicy,
                            gangs::kSameRails, gangs::kPattern}) {
    if (annotations.contains(asked)) return NoWait{Cause::kIgnoredByScheduler, {asked}};
  }
  return std::nullopt;
}

// Returns the number of pods that the Job runs at once: at most its completions.
int PodsAtOnce(const Json& job, int parallelism) {
  const Json* completions = FindPath(job, {"spec", "completions"});
  const bool limited = completions != nullptr && completions->is_number_integer() &&
                       *completions >= 1 && *completions < parallelism;
  return limited ? completions->get<int>() : parallelism;
}

bool IsAboutDisruptions(const Json& rule) {
  const auto& conditions = kube::ElementsAt(rule, {"onPodConditions"});
  return std::any_of(conditions.begin(), conditions.end(), [](const Json& condition) {
    const std::string status = StringAt(condition, {"status"});
    return StringAt(condition, {"type"}) == "DisruptionTarget" &&
           (status.empty() || status == "True");
  });
}

// Returns whether the Job does not count evicted pods as failed.
bool IgnoresDisruptions(const Json& job) {
  const auto& rules = kube::ElementsAt(job, {"spec", "podFailurePolicy", "rules"});
  const auto first = std::find_if(rules.begin(), rules.end(), IsAboutDisruptions);
  return first != rules.end() && StringAt(*first, {"action"}) == "Ignore";
}

}  // namespace

void AddGangSize(const Json& pod, const GangKinds& kinds, Annotations& annotations) {
  const std::optional<Job> job = JobOf(pod);
  if (!job || !job->size || GangOf(pod, KindOfPod(pod), kinds).empty()) return;
  annotations.emplace(kGangSize, absl::StrCat(*job->size));
}

std::string SizeOfRankedGang(const Json& pod, const GangKinds& kinds,
                             const Annotations& annotations, const jobs::Rank& rank) {
  const std::optional<Job> job = JobOf(pod);
  const std::string gang = GangOf(pod, KindOfPod(pod), kinds);
  const bool native = IsInSchedulingGroup(pod);
  const bool numbered = annotations.contains(gangs::kCompletionIndex);
  if (gang.empty() || (!numbered && ((job && job->index) || rank.rank)) ||
      (native ? WhyNoGang : WhyNoGate)(pod, gang, annotations).has_value()) {
    return "";
  }
  std::string size = annotations.at(kGangSize);
  // A completion index ignores where the scheduler places the pod, so the rank by place replaces
  // it. If the gang is larger than the index's ranks, the index stays.
  const bool same = rank.rank && rank.world && absl::StrCat(*rank.world) == size;
  return !numbered || (native && same) ? size : "";
}

absl::Status AddGangGate(const GangKinds& kinds, const Annotations& annotations,
                         std::optional<NotDoneNote>& refused, Draft& draft) {
  const absl::StatusOr<const Json*> gates = ListAt(draft, "/spec/schedulingGates");
  if (!gates.ok()) return gates.status();
  const bool has_ours = Named(*gates, kGate) != nullptr;
  const Json& pod = draft.object();
  const std::string asked = GangOf(pod);
  const std::string gang = GangOf(pod, KindOfPod(pod), kinds);
  if (gang.empty()) {
    if (has_ours) {
      draft.Warn(absl::StrCat("spec.schedulingGates: ", kGate,
                              " is never removed from a pod without the label ", kGangLabel,
                              "; leave it out"));
    }
    return absl::OkStatus();
  }
  const NotDone reason = asked.empty() ? NotDone::kGangOfKind : NotDone::kGang;
  if (IsInSchedulingGroup(pod)) {
    if (const MaybeNoWait left_out = WhatTheSchedulerLeavesOut(pod, gang, annotations)) {
      refused = NoteOf(reason, left_out->cause, left_out->arguments);
    }
    AddLabelTo("", gang, draft);
    return absl::OkStatus();
  }
  if (const MaybeNoWait why = WhyNoGate(pod, gang, annotations)) {
    refused = NoteOf(reason, why->cause, why->arguments);
    return absl::OkStatus();
  }
  AddLabelTo("", gang, draft);
  return has_ours ? absl::OkStatus() : draft.Append("/spec/schedulingGates", {{"name", kGate}});
}

absl::Status NoteGangsAreOff(const Json& pod, std::optional<NotDoneNote>& refused) {
  if (!GangOf(pod).empty()) refused = NoteOf(NotDone::kGang, Cause::kGangsOff);
  return absl::OkStatus();
}

void StampGangSize(const GangKinds& kinds, int parallelism, Annotations& annotations,
                   Draft& draft) {
  const Json& job = draft.object();
  const Json* pod_template = FindPath(job, {"spec", "template"});
  const bool by_template = pod_template != nullptr && !GangOf(*pod_template).empty();
  if (!by_template && GangOf(job, KindOfJob(job), kinds).empty()) return;
  const bool asked = by_template || !GangOf(job).empty();
  if (IgnoresDisruptions(job)) annotations.emplace(gangs::kEvictable, "true");
  parallelism = PodsAtOnce(job, parallelism);
  // All identical Jobs of a JobSet are one gang, unless their pods' label names another.
  int64_t size = parallelism;
  const std::string name = by_template ? GangOf(*pod_template) : GangOf(job);
  int jobs = 0;
  const auto own = annotations.find(kGangSize);
  if (absl::SimpleAtoi(StringAt(job, {"metadata", "labels", jobs::kReplicatedJobReplicas}),
                       &jobs) &&
      jobs > 0) {
    // Only the user knows the size of a gang that the pods of several owners join.
    if (own != annotations.end() && !name.empty() && name != "true") return;
    if (name.empty() || name == "true") size *= jobs;
  }
  if (own != annotations.end() && own->second != absl::StrCat(size)) {
    draft.Warn(absl::StrCat("spec.template.", AnnotationField(kGangSize),
                            " is not spec.parallelism",
                            size == parallelism ? "" : " times the number of identical Jobs",
                            ", which is ", size, "; remove it"));
  }
  if (size < 1 && asked) {
    draft.Warn(
        "its pods do not wait for each other: spec.parallelism is 0, so the gang's size "
        "is unknown; to pause a Job, set spec.suspend instead");
  }
  if (size >= 1) annotations.emplace(kGangSize, absl::StrCat(size));
}

void AddGangLabel(const GangKinds& kinds, Draft& job) {
  const std::string gang = GangOf(job.object(), KindOfJob(job.object()), kinds);
  if (!gang.empty()) AddLabelTo("/spec/template", gang, job);
}

}  // namespace railhead::op
