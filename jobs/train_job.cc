// SPDX-License-Identifier: Apache-2.0
//
// TrainJob of Kubeflow Trainer. It creates a JobSet, which its pods name.
#include "jobs/kinds.h"

namespace railhead::jobs {

constexpr Kind kTrainJob = {.name = "TrainJob", .pods = Kind::Pods::kOneProgram};

}  // namespace railhead::jobs
