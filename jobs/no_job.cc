// SPDX-License-Identifier: Apache-2.0
//
// Pods that are not a job: without a controller, of controllers whose pods are independent or
// replicas of a service, and of a kind that is not in the list.
#include "jobs/job.h"
#include "jobs/kinds.h"

namespace railhead::jobs {
namespace {

constexpr absl::string_view kUseAJob =
    "if these pods are the ranks of a job, use an Indexed Job or a JobSet";
constexpr Cause kNoOwner = {"NoJob", "NoOwner", 0, "no RANK: the pod belongs to no job", kUseAJob};
constexpr Cause kNoOrder = {"NoJob", "NoOrder", 1, "no RANK: the pods of a $0 have no order",
                            kUseAJob};
constexpr Cause kNotKnown = {
    "KindUnknown", "KindUnknown", 1,
    "no RANK: the pod belongs to a '$0', a kind that Railhead does not know",
    "set RANK, WORLD_SIZE and MASTER_ADDR, or use an Indexed Job or a JobSet"};
constexpr const Cause* kCausesOfNoJob[] = {&kNoOwner, &kNoOrder, &kNotKnown};

std::optional<Rank> RankOfNoJob(const Pod& pod) {
  if (pod.owner.kind.empty()) return Rank{.missing = {{&kNoOwner}}};
  const bool known = KindOf(pod.owner).pods == Kind::Pods::kNoJob;
  return Rank{.missing = {{known ? &kNoOrder : &kNotKnown, {pod.owner.kind}}}};
}

}  // namespace

constexpr Kind kReplicaSet = {
    .name = "ReplicaSet", .pods = Kind::Pods::kNoJob, .eviction = Kind::Eviction::kMadeAgain};
constexpr Kind kReplicationController = {.name = "ReplicationController",
                                         .pods = Kind::Pods::kNoJob,
                                         .eviction = Kind::Eviction::kMadeAgain};
constexpr Kind kDaemonSet = {.name = "DaemonSet", .pods = Kind::Pods::kNoJob};
constexpr Kind kNode = {.name = "Node", .pods = Kind::Pods::kNoJob};  // static pods
constexpr Kind kNoController = {.name = "", .eviction = Kind::Eviction::kIsTheEnd};
constexpr Kind kUnknownKind = {
    .name = "another kind", .rank = RankOfNoJob, .causes = kCausesOfNoJob};

}  // namespace railhead::jobs
