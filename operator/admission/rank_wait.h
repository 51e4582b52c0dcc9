// SPDX-License-Identifier: Apache-2.0
//
// A pod that kube-scheduler places with its PodGroup starts as soon as it has its node, and its
// rank is known when all of its gang have theirs. Variables are made when a container starts, so an
// init container waits until the rank is there. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_RANK_WAIT_H_
#define RAILHEAD_OPERATOR_ADMISSION_RANK_WAIT_H_

#include "absl/status/status.h"
#include "operator/admission/draft.h"
#include "operator/rdma_resources.h"

namespace railhead::op {

// Adds the init container, of the image of the first container that asks for RDMA, which has
// /bin/sh, and the volume that shows it the annotation railhead.io/rank.
absl::Status AddRankWait(const RdmaResources& rdma, Draft& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_RANK_WAIT_H_
