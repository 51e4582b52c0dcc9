// SPDX-License-Identifier: Apache-2.0
//
// Workflow of Argo.
#include "jobs/fields.h"
#include "jobs/kinds.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

constexpr Cause kStepOfWorkflow = {"KindHasNoRanks", "Workflow", 0,
                                   "no RANK: the steps of a Workflow are not the ranks of a job",
                                   "let a step of type resource create an Indexed Job or a JobSet"};
constexpr const Cause* kCausesOfWorkflow[] = {&kStepOfWorkflow};

std::optional<Rank> RankInWorkflow(const Pod& pod) {
  if (kube::LabelOf(pod.json, "workflows.argoproj.io/workflow").empty() &&
      pod.owner.kind != kWorkflow.name) {
    return std::nullopt;
  }
  return Rank{.missing = {{&kStepOfWorkflow}}};
}

}  // namespace

constexpr Kind kWorkflow = {
    .name = "Workflow", .rank = RankInWorkflow, .causes = kCausesOfWorkflow};

}  // namespace railhead::jobs
