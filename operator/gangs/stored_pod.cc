// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/stored_pod.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "kube/elements.h"
#include "operator/gangs/names.h"
#include "operator/gangs/pod_rules.h"
#include "operator/gangs/workload.h"

namespace railhead::op::gangs {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr int kMostIndex = 1'000'000'000;

std::string Annotation(const Json& pod, absl::string_view name) {
  return StringAt(pod, {"metadata", "annotations", name});
}

std::optional<int> NumberIn(const std::string& text, int min, int max) {
  int number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < min || number > max) return std::nullopt;
  return number;
}

// What admission would refuse is not there.
std::optional<absl::Duration> DurationIn(const std::string& text) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration < absl::ZeroDuration()) return std::nullopt;
  return duration;
}

void ReadGates(const Json& spec, Membership& member) {
  const auto& gates = kube::ElementsAt(spec, {"schedulingGates"});
  for (size_t i = 0; i < gates.size(); ++i) {
    if (StringAt(gates[i], {"name"}) == kGate) {
      member.gate = i;
    } else {
      member.other_gates = true;
    }
  }
}

void ReadScheduling(const Json& pod, Membership& member) {
  const Json* scheduled = kube::FindCondition(pod, "PodScheduled");
  if (scheduled == nullptr) return;
  member.unschedulable = StringAt(*scheduled, {"status"}) == "False" &&
                         StringAt(*scheduled, {"reason"}) == "Unschedulable";
  if (member.unschedulable) member.unschedulable_why = StringAt(*scheduled, {"message"});
}

std::optional<Membership> MembershipOf(const Json& pod, const Json& spec, bool bound) {
  Membership member;
  member.gang = StringAt(pod, {"metadata", "labels", kGangLabel});
  const std::optional<int> size = NumberIn(Annotation(pod, kGangSize), 1, kMostPods);
  if (member.gang.empty() || !size) return std::nullopt;
  member.size = *size;
  member.owner = ControllerOf(pod).value_or(Owner());
  member.kind = member.owner.kind;
  member.evictable = Annotation(pod, kEvictable) == "true";
  member.index = NumberIn(Annotation(pod, kCompletionIndex), 0, kMostIndex);
  if (const std::optional<Workload> workload = WorkloadOf(pod)) {
    // A name of its own stands for a gang of all kinds of pods of the job, whose order is theirs.
    const bool part = member.gang == "true";
    member.group = part ? workload->part : workload->whole;
    member.group_name = workload->name;
    member.index = part ? workload->index : std::nullopt;
    // A PodGroup makes no pods: whoever does is their owner.
    if (workload->kind != "PodGroup") member.kind = workload->kind;
  }
  member.dns_name = DnsNameOf(pod);
  member.require_level = Annotation(pod, kRequireLevel);
  member.prefer_level = Annotation(pod, kPreferLevel);
  member.prefer_wait = DurationIn(Annotation(pod, kPreferWait)).value_or(absl::ZeroDuration());
  member.timeout = DurationIn(Annotation(pod, kTimeout)).value_or(absl::InfiniteDuration());
  member.fails_at_timeout = Annotation(pod, kTimeoutPolicy) == "fail";
  member.same_rails = Annotation(pod, kSameRails) == "true";
  member.pattern = Annotation(pod, kPattern);
  if (const Json* priority = Find(spec, "priority");
      priority != nullptr && priority->is_number_integer()) {
    member.priority = priority->get<int>();
  }
  absl::Time created;
  if (absl::ParseTime(absl::RFC3339_full, StringAt(pod, {"metadata", "creationTimestamp"}),
                      &created, nullptr)) {
    member.created = created;
  }
  ReadGates(spec, member);
  const Json* selector = Find(spec, "nodeSelector");
  member.has_selector = selector != nullptr && selector->is_object();
  member.one_on_a_node = OneOnANode(pod);
  member.native = IsInSchedulingGroup(pod);
  member.released = !member.native && !member.gate && !Annotation(pod, kPlacement).empty();
  const Json* rank = FindPath(pod, {"metadata", "annotations", kRank});
  member.wants_rank = member.native && rank != nullptr && *rank == "";
  if (!member.gate) member.rank = NumberIn(Annotation(pod, kRank), 0, kMostIndex);
  if (bound) return member;
  member.rules = ReadNodeRules(spec);
  ReadScheduling(pod, member);
  if (member.released) member.resource_version = StringAt(pod, {"metadata", "resourceVersion"});
  return member;
}

}  // namespace

std::optional<StoredPod> ReadStoredPod(const Json& pod, const RdmaResources& rdma) {
  const Json* spec = Find(pod, "spec");
  if (spec == nullptr || !spec->is_object()) return std::nullopt;
  StoredPod stored;
  stored.space = StringAt(pod, {"metadata", "namespace"});
  stored.name = StringAt(pod, {"metadata", "name"});
  stored.uid = StringAt(pod, {"metadata", "uid"});
  stored.node = StringAt(*spec, {"nodeName"});
  const std::string phase = StringAt(pod, {"status", "phase"});
  const Json* deletion = FindPath(pod, {"metadata", "deletionTimestamp"});
  stored.succeeded = phase == "Succeeded";
  stored.failed = phase == "Failed";
  stored.leaving = stored.failed || (deletion != nullptr && !deletion->is_null());
  stored.member = MembershipOf(pod, *spec, !stored.node.empty());
  const bool ended = phase == "Succeeded" || phase == "Failed";
  if (!stored.member && (stored.node.empty() || ended)) return std::nullopt;
  if (ended) return stored;
  stored.requests = RequestsOf(*spec);
  stored.claims = ReadClaims(pod);
  if (stored.member || HcasIn(stored.requests, rdma) > 0 || GpusIn(stored.requests) > 0) {
    stored.labels = LabelsOf(pod);
  }
  return stored;
}

}  // namespace railhead::op::gangs
