// SPDX-License-Identifier: Apache-2.0
//
// PodGroup: the pods of one spec.schedulingGroup; their number is unknown, and they have no order.
// The labels are those of the coscheduling plugin, and of Kueue for plain pods.
#include "jobs/fields.h"
#include "jobs/kinds.h"

namespace railhead::jobs {
namespace {

constexpr Cause kNoOrderInGroup = {"NoIndex", "PodGroup", 0,
                                   "no RANK: the pods of a PodGroup have no order",
                                   "add the label railhead.io/gang to them, or use an Indexed Job"};
constexpr const Cause* kCausesOfPodGroup[] = {&kNoOrderInGroup};

constexpr absl::string_view kGroupLabels[] = {"scheduling.x-k8s.io/pod-group",
                                              "kueue.x-k8s.io/pod-group-name"};

std::optional<Identity> PodGroupOf(const kube::Json& pod) {
  std::string name = kube::StringAt(pod, {"spec", "schedulingGroup", "podGroupName"});
  if (name.empty()) return std::nullopt;
  return Identity{.name = std::move(name)};
}

std::optional<Rank> RankInPodGroup(const Pod& /*pod*/) {
  return Rank{.missing = {{&kNoOrderInGroup}}};
}

}  // namespace

constexpr Kind kPodGroup = {
    .name = "PodGroup",
    .identity = PodGroupOf,
    .rank = RankInPodGroup,
    .causes = kCausesOfPodGroup,
    .creates_pods = false,
    .group_labels = kGroupLabels,
};

}  // namespace railhead::jobs
