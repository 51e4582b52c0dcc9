// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/stored_pod.h"

#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/string_view.h"
#include "jobs/fields.h"
#include "kube/elements.h"
#include "operator/objects/names.h"
#include "operator/objects/pod_bounds.h"
#include "operator/objects/pod_rules.h"

namespace railhead::op::gangs {
namespace {

using jobs::NumberIn;
using kube::AnnotationOf;
using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr int kMostIndex = 1'000'000'000;

// A longer value is not one that admission accepts, and equals none that is.
std::string ShortAnnotation(const Json& pod, absl::string_view name) {
  return AnnotationOf(pod, name).substr(0, kMostOfAnAnnotation + 1);
}

// Returns nullopt for a duration that admission would reject.
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
  if (member.unschedulable) {
    member.unschedulable_why = StringAt(*scheduled, {"message"}).substr(0, kMostOfAMessage);
  }
}

std::optional<Membership> MembershipOf(const Json& pod, const Json& spec, const PodExcess& excess,
                                       bool bound) {
  GangTerms terms;
  terms.gang = kube::LabelOf(pod, kGangLabel);
  const std::optional<int> size = NumberIn(AnnotationOf(pod, kGangSize), 1, kMostPods);
  if (terms.gang.empty() || !size) return std::nullopt;
  terms.size = *size;
  terms.owner = jobs::ControllerOf(pod).value_or(jobs::Owner());
  terms.kind = &jobs::KindOf(terms.owner);
  terms.evictable = AnnotationOf(pod, kEvictable) == "true";
  Membership member;
  member.index = NumberIn(AnnotationOf(pod, kCompletionIndex), 0, kMostIndex);
  if (const std::optional<jobs::Job> job = jobs::JobOf(pod)) {
    // A named gang has the job's pods of all kinds, which define their own order.
    const bool part = terms.gang == "true";
    terms.group = part ? job->part : job->whole;
    terms.group_name = job->name;
    // Not for a named gang: its parts are recreated one after the other.
    if (part) terms.attempt = job->attempt;
    member.index = part ? job->index : std::nullopt;
    if (job->kind->creates_pods) terms.kind = job->kind;
  }
  member.dns_name = DnsNameOf(pod);
  terms.require_level = ShortAnnotation(pod, kRequireLevel);
  terms.prefer_level = ShortAnnotation(pod, kPreferLevel);
  terms.prefer_wait = DurationIn(AnnotationOf(pod, kPreferWait)).value_or(absl::ZeroDuration());
  terms.timeout = DurationIn(AnnotationOf(pod, kTimeout)).value_or(absl::InfiniteDuration());
  terms.fails_at_timeout = AnnotationOf(pod, kTimeoutPolicy) == "fail";
  terms.same_rails = AnnotationOf(pod, kSameRails) == "true";
  terms.pattern = ShortAnnotation(pod, kPattern);
  if (const Json* priority = Find(spec, "priority");
      priority != nullptr && priority->is_number_integer()) {
    terms.priority = priority->get<int>();
  }
  member.terms = std::move(terms);
  absl::Time created;
  if (absl::ParseTime(absl::RFC3339_full, StringAt(pod, {"metadata", "creationTimestamp"}),
                      &created, nullptr)) {
    member.created = created;
  }
  ReadGates(spec, member);
  const Json* selector = Find(spec, "nodeSelector");
  member.has_selector = selector != nullptr && selector->is_object();
  member.too_large = WhyNotKept(excess);
  member.one_on_a_node = !excess.claims && OneOnANode(pod);
  member.native = jobs::IsInSchedulingGroup(pod);
  member.released = !member.native && !member.gate && !AnnotationOf(pod, kPlacement).empty();
  const Json* rank = FindPath(pod, {"metadata", "annotations", kRank});
  member.wants_rank = member.native && rank != nullptr && *rank == "";
  if (!member.gate) member.rank = NumberIn(AnnotationOf(pod, kRank), 0, kMostIndex);
  if (bound) return member;
  member.rules = excess.rules ? ReadHostname(spec) : ReadNodeRules(spec);
  ReadScheduling(pod, member);
  if (member.released) member.resource_version = StringAt(pod, {"metadata", "resourceVersion"});
  return member;
}

}  // namespace

bool GangTerms::operator<(const GangTerms& other) const {
  const auto all = [](const GangTerms& terms) {
    return std::tie(terms.gang, terms.size, terms.owner.api, terms.owner.kind, terms.owner.name,
                    terms.owner.uid, terms.kind, terms.group, terms.group_name, terms.attempt,
                    terms.require_level, terms.prefer_level, terms.prefer_wait, terms.timeout,
                    terms.evictable, terms.fails_at_timeout, terms.same_rails, terms.pattern,
                    terms.priority);
  };
  return all(*this) < all(other);
}

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
  const PodExcess excess = ExcessOf(pod);
  stored.member = MembershipOf(pod, *spec, excess, !stored.node.empty());
  const bool ended = phase == "Succeeded" || phase == "Failed";
  if (!stored.member && !stored.leaving && !ended) {
    const std::optional<jobs::Job> job = jobs::JobOf(pod);
    if (job) stored.beside = jobs::PartOfSeveralTemplates(*job);
  }
  if (!stored.member && stored.beside.empty() && (stored.node.empty() || ended)) {
    return std::nullopt;
  }
  if (ended) return stored;
  Resources requests = RequestsOf(*spec);
  KeepMost(rdma, requests);
  stored.requests = std::move(requests);
  stored.claims = excess.claims ? WidestClaims() : ReadClaims(pod);
  const bool of_interest =
      stored.member || HcasIn(*stored.requests, rdma) > 0 || GpusIn(*stored.requests) > 0;
  if (of_interest && !excess.labels) stored.labels = LabelsOf(pod);
  return stored;
}

}  // namespace railhead::op::gangs
