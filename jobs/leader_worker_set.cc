// SPDX-License-Identifier: Apache-2.0
//
// LeaderWorkerSet, also of KServe: a group, by the labels and annotations
// leaderworkerset.sigs.k8s.io/*. Address: the leader, SET-GROUP.SUBDOMAIN.
#include "absl/strings/str_cat.h"
#include "jobs/fields.h"
#include "jobs/kinds.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

using kube::Json;

constexpr char kGroupIndex[] = "leaderworkerset.sigs.k8s.io/group-index";
constexpr absl::string_view kTopologiesOfGroup[] = {
    "leaderworkerset.sigs.k8s.io/exclusive-topology",
    "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"};

constexpr Cause kNoGroupSize = {
    "SizeUnknown", "NoGroupSize", 0,
    "no RANK or WORLD_SIZE: the pod lacks the label worker-index or the annotation size of "
    "leaderworkerset.sigs.k8s.io",
    "let the LeaderWorkerSet controller set them"};
constexpr Cause kOutsideGroup = {
    "SizeInvalid", "OutsideGroup", 2,
    "no RANK or WORLD_SIZE: worker index $0 is outside a group of size $1",
    "let its controller set leaderworkerset.sigs.k8s.io/size"};
constexpr const Cause* kCausesOfGroup[] = {&kNoGroupSize, &kOutsideGroup};

// The leaders have one controller, and the workers of each group another.
std::optional<Identity> LeaderWorkerSetOf(const Json& pod) {
  std::string name = kube::LabelOf(pod, "leaderworkerset.sigs.k8s.io/name");
  if (name.empty()) return std::nullopt;
  return Identity{.name = std::move(name), .above_controllers = true};
}

bool ReadGroup(const Json& pod, Job& job) {
  const std::string group = kube::LabelOf(pod, kGroupIndex);
  job.part = absl::StrCat(job.whole, "/", group);
  job.attempt = kube::LabelOf(pod, "leaderworkerset.sigs.k8s.io/template-revision-hash");
  job.size = NumberIn(kube::AnnotationOf(pod, "leaderworkerset.sigs.k8s.io/size"), 1);
  job.index = NumberIn(kube::LabelOf(pod, "leaderworkerset.sigs.k8s.io/worker-index"), 0);
  return !group.empty();
}

std::optional<Rank> RankInGroup(const Pod& pod) {
  if (HasAnnotation(pod.json, kCompletionIndex)) return std::nullopt;
  const Job& group = *pod.job;
  Rank rank = {.job = absl::StrCat(group.name, "-", kube::LabelOf(pod.json, kGroupIndex)),
               .rank = group.index};
  rank.master = HostOf(rank.job, pod.json);
  if (!group.index || !group.size) {
    rank.missing.push_back({&kNoGroupSize});
  } else if (*group.index < *group.size) {
    rank.world = group.size;
  } else {
    rank.missing.push_back(
        {&kOutsideGroup, {absl::StrCat(*group.index), absl::StrCat(*group.size)}});
  }
  return rank;
}

}  // namespace

// A deleted pod takes its group with it, unless the restartPolicy is None. Pods show neither, so
// the user annotates the templates.
constexpr Kind kLeaderWorkerSet = {
    .name = "LeaderWorkerSet",
    .identity = LeaderWorkerSetOf,
    .part = ReadGroup,
    .rank = RankInGroup,
    .causes = kCausesOfGroup,
    .pods = Kind::Pods::kPerhapsOneProgram,
    .evictable =
        "annotate its templates with railhead.io/evictable: \"true\" (with restartPolicy: "
        "None the rest of its group continues)",
    .at_once = "set spec.startupPolicy: LeaderCreated",
    .exclusive_topology = kTopologiesOfGroup,
};

}  // namespace railhead::jobs
