// SPDX-License-Identifier: Apache-2.0
//
// A pod that kube-scheduler places with its PodGroup starts as soon as it has its node, and its
// rank is known when all of its gang have theirs. Variables are made when a container starts, so an
// init container waits until the rank is there. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_RANK_WAIT_H_
#define RAILHEAD_OPERATOR_ADMISSION_RANK_WAIT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kube/json.h"
#include "operator/admission/draft.h"

namespace railhead::op {

// Returns the init container, of the image of the container at `served`, which has /bin/sh, and
// adds the volume that shows it the annotation railhead.io/rank. Nothing, with a warning, for a pod
// with another volume of that name.
absl::StatusOr<std::optional<kube::Json>> AddRankWait(const std::string& served, Draft& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_RANK_WAIT_H_
