// SPDX-License-Identifier: Apache-2.0
//
// The list of kinds. A new kind is a file that defines it, and its lines here.
#ifndef RAILHEAD_JOBS_KINDS_H_
#define RAILHEAD_JOBS_KINDS_H_

#include "jobs/kind.h"

namespace railhead::jobs {

extern const Kind kJobSet, kLeaderWorkerSet, kMpiJob, kVolcanoJob, kBatchJob, kPyTorchJob,
    kXgBoostJob, kJaxJob, kTfJob, kPaddleJob, kTrainJob, kRayCluster, kSparkApplication, kWorkflow,
    kStatefulSet, kPodGroup, kUnindexedJob, kReplicaSet, kReplicationController, kDaemonSet, kNode,
    kNoController, kUnknownKind;

// In the order in which a pod is compared with them: the first that reads it decides.
inline constexpr const Kind* kKinds[] = {
    &kJobSet,
    &kLeaderWorkerSet,
    &kMpiJob,
    &kBatchJob,
    &kPyTorchJob,
    &kXgBoostJob,
    &kJaxJob,
    &kTfJob,
    &kPaddleJob,
    &kVolcanoJob,
    &kTrainJob,
    &kRayCluster,
    &kSparkApplication,
    &kWorkflow,
    &kStatefulSet,
    &kPodGroup,
    &kUnindexedJob,
    &kReplicaSet,
    &kReplicationController,
    &kDaemonSet,
    &kNode,
    &kNoController,
    &kUnknownKind,
};

}  // namespace railhead::jobs

#endif  // RAILHEAD_JOBS_KINDS_H_
