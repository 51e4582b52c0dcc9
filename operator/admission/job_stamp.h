// SPDX-License-Identifier: Apache-2.0
//
// Annotations that admission writes to a Job's pod template for the later pods. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_JOB_STAMP_H_
#define RAILHEAD_OPERATOR_ADMISSION_JOB_STAMP_H_

#include "absl/status/status.h"
#include "kube/json.h"
#include "operator/config/config.h"
#include "operator/objects/draft.h"

namespace railhead::op {

// Annotates the template of a new Job whose pods request RDMA: number of pods of an Indexed Job
// and, if gangs are on, the gang's size and label (gang_gate.h). Existing values of the template
// are kept, with a warning if they do not fit. Warns about Jobs whose ranks cannot find each other.
absl::Status StampTemplate(const InjectionConfig& config, Draft& job);

// Updates annotations that depend on the Job's size when the Job changes from `before`: Kueue
// starts it partially, or its user resizes it. Values that admission did not write are kept. The
// template of a started Job is immutable; its user gets a warning with the fix.
absl::Status RestampTemplate(const InjectionConfig& config, const kube::Json& before, Draft& job);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_JOB_STAMP_H_
