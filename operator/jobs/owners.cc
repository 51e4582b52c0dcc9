// SPDX-License-Identifier: Apache-2.0
#include "operator/jobs/owners.h"

#include <algorithm>
#include <iterator>

namespace railhead::op::gangs {
namespace {

using Eviction = OwnerRules::Eviction;

constexpr absl::string_view kIgnoreDisruptions =
    "give its Job a spec.podFailurePolicy with action Ignore for the condition DisruptionTarget";
constexpr absl::string_view kAnnotateTemplates =
    "annotate its templates with railhead.io/evictable: \"true\" (with restartPolicy: None the "
    "rest of its group continues)";
constexpr absl::string_view kParallel = "set spec.podManagementPolicy: Parallel";
constexpr absl::string_view kLeaderCreated = "set spec.startupPolicy: LeaderCreated";

constexpr OwnerRules kOwners[] = {
    {"", Eviction::kIsTheEnd, false, "", ""},
    // Job: any deleted pod counts towards backoffLimit, unless the Job's podFailurePolicy ignores
    // disruptions. Pods of a JobSet or TrainJob are pods of Jobs.
    {"Job", Eviction::kMayCost, false, "", kIgnoreDisruptions},
    {"JobSet", Eviction::kMayCost, false, "", kIgnoreDisruptions},
    // LeaderWorkerSet: a deleted pod takes its group with it, unless its restartPolicy is None.
    // Pods show neither, so the user annotates the templates.
    {"LeaderWorkerSet", Eviction::kMayCost, true, kLeaderCreated, kAnnotateTemplates},
    {"ReplicaSet", Eviction::kMadeAgain, false, "", ""},
    {"StatefulSet", Eviction::kMadeAgain, true, kParallel, ""},
    // Kubeflow's: a pod that is not there is made; only one that has failed is counted.
    {"JAXJob", Eviction::kMadeAgain, false, "", ""},
    {"MPIJob", Eviction::kMadeAgain, false, "", ""},
    {"PaddleJob", Eviction::kMadeAgain, false, "", ""},
    {"PyTorchJob", Eviction::kMadeAgain, false, "", ""},
    {"TFJob", Eviction::kMadeAgain, false, "", ""},
    {"XGBoostJob", Eviction::kMadeAgain, false, "", ""},
};
constexpr OwnerRules kUnknown = {"another kind", Eviction::kMayCost, false, "", ""};

}  // namespace

const OwnerRules& RulesOfOwner(absl::string_view kind) {
  const auto* found = std::find_if(std::begin(kOwners), std::end(kOwners),
                                   [&](const OwnerRules& rules) { return rules.kind == kind; });
  return found == std::end(kOwners) ? kUnknown : *found;
}

}  // namespace railhead::op::gangs
