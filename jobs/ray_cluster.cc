// SPDX-License-Identifier: Apache-2.0
//
// RayCluster, also of a RayJob or RayService.
#include "jobs/fields.h"
#include "jobs/kinds.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

constexpr Cause kByRay = {
    "KindHasNoRanks", "ByRay", 0, "no RANK: Ray starts and numbers the ranks inside its workers",
    "let Ray Train start them, or set RANK, WORLD_SIZE and MASTER_ADDR in the task of each"};
constexpr const Cause* kCausesOfRay[] = {&kByRay};

std::optional<Rank> RankInRayCluster(const Pod& pod) {
  if (kube::LabelOf(pod.json, "ray.io/cluster").empty()) return std::nullopt;
  return Rank{.missing = {{&kByRay}}};
}

}  // namespace

constexpr Kind kRayCluster = {
    .name = "RayCluster", .rank = RankInRayCluster, .causes = kCausesOfRay};

}  // namespace railhead::jobs
