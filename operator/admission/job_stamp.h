// SPDX-License-Identifier: Apache-2.0
//
// What admission writes into the pod template of a Job, for the pods that will be made of it. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_JOB_STAMP_H_
#define RAILHEAD_OPERATOR_ADMISSION_JOB_STAMP_H_

#include "absl/status/status.h"
#include "kube/json.h"
#include "operator/admission/draft.h"
#include "operator/config.h"

namespace railhead::op {

// The annotation of a Job's template with the number of its pods, which they get as WORLD_SIZE.
inline constexpr char kWorldSize[] = "railhead.io/world-size";

// Stamps the template of a new Job whose pods ask for RDMA: the number of pods of an Indexed Job
// and, where gangs are served, the size of its gang and its label (gang_gate.h). What the template
// says of these itself stays, with a warning where it does not fit. Warns of Jobs whose ranks could
// not find each other.
absl::Status StampTemplate(const InjectionConfig& config, Draft& job);

// Stamps anew what follows from the size of a Job that was `before`, as it changes: one that Kueue
// starts in part, or that its user resizes. A stamp that is not what admission wrote stays. The
// template of a Job that has started cannot change; its user is told what to do instead.
absl::Status RestampTemplate(const InjectionConfig& config, const kube::Json& before, Draft& job);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_JOB_STAMP_H_
