// SPDX-License-Identifier: Apache-2.0
//
// Wait for the rank in a pod that kube-scheduler places with its PodGroup. The pod starts when it
// has a node, but its rank is unknown until its whole gang has nodes. Variables are fixed when a
// container starts, so an init container waits for the rank. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_RANK_WAIT_H_
#define RAILHEAD_OPERATOR_ADMISSION_RANK_WAIT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kube/json.h"
#include "operator/objects/draft.h"

namespace railhead::op {

// Adds the volume that exposes the annotation railhead.io/rank, and returns the init container. The
// container uses the image of the container at `served`, which must have /bin/sh. Returns nullopt,
// with a warning, for a pod with another volume of that name.
absl::StatusOr<std::optional<kube::Json>> AddRankWait(const std::string& served, Draft& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_RANK_WAIT_H_
