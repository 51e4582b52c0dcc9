// SPDX-License-Identifier: Apache-2.0
//
// StatefulSet. It serves more often than it trains, so its pods get ranks only if its template
// gives their number, which may change while they run. Index: label pod-index. Size: annotation
// railhead.io/world-size, by the user. Address: SET-0.SUBDOMAIN.
#include "jobs/fields.h"
#include "jobs/kinds.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

constexpr Cause kNoNumberOfPods = {
    "NoJob", "NoNumberOfPods", 0, "no RANK: the pods of a StatefulSet do not contain their number",
    "annotate its template with railhead.io/world-size: the number of its pods"};
constexpr Cause kPodIndexNoNumber = {"IndexInvalid", "PodIndexNoNumber", 1,
                                     "no RANK: label apps.kubernetes.io/pod-index is '$0'",
                                     "let the StatefulSet controller set it"};
constexpr const Cause* kCausesOfStatefulSet[] = {&kNoNumberOfPods, &kPodIndexNoNumber,
                                                 &kNotAboveRank};

std::optional<Rank> RankInStatefulSet(const Pod& pod) {
  if (pod.owner.kind != kStatefulSet.name) return std::nullopt;
  if (!HasAnnotation(pod.json, kWorldSize)) return Rank{.missing = {{&kNoNumberOfPods}}};
  const std::string text = kube::LabelOf(pod.json, "apps.kubernetes.io/pod-index");
  Rank rank;
  rank.rank = NumberIn(text, 0, kMostCount);
  if (!rank.rank) {
    rank.missing.push_back({&kPodIndexNoNumber, {text}});
    return rank;
  }
  rank.job = pod.owner.name;
  rank.master = HostOf(rank.job.empty() ? "" : rank.job + "-0", pod.json);
  TakeSize(pod, kNoStamp, rank);
  return rank;
}

}  // namespace

constexpr Kind kStatefulSet = {
    .name = "StatefulSet",
    .rank = RankInStatefulSet,
    .causes = kCausesOfStatefulSet,
    .pods = Kind::Pods::kPerhapsOneProgram,
    .eviction = Kind::Eviction::kMadeAgain,
    .at_once = "set spec.podManagementPolicy: Parallel",
};

}  // namespace railhead::jobs
