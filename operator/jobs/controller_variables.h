// SPDX-License-Identifier: Apache-2.0
//
// Variables by which controllers of training jobs pass rank, size and address to their pods under
// names other than RANK, WORLD_SIZE and MASTER_ADDR. Pure.
#ifndef RAILHEAD_OPERATOR_JOBS_CONTROLLER_VARIABLES_H_
#define RAILHEAD_OPERATOR_JOBS_CONTROLLER_VARIABLES_H_

#include <optional>
#include <string>

#include "kube/json.h"
#include "operator/jobs/workload.h"

namespace railhead::op {

// Rank of a pod of Kubeflow's training operator. JAXJob: from PROCESS_ID, NUM_PROCESSES and
// COORDINATOR_ADDRESS. TFJob: from TF_CONFIG; the chief (or master) precedes the workers, and
// parameter servers and evaluators are not ranks. PaddleJob without a master: from the label
// replica-index and PADDLE_NNODES.
struct KubeflowRank {
  bool is_rank = true;                     // false: a parameter server, an evaluator or similar
  std::optional<int> rank = std::nullopt;  // rank, world and master: all or none
  std::optional<int> world = std::nullopt;
  std::string master = {};
};
KubeflowRank KubeflowRankOf(const kube::Json& pod, const gangs::Workload& job);

// Task of a pod of a Volcano Job. The plugin env sets VC_TASK_INDEX. The plugin svc sets
// VC_TASK_NUM for each task, from a ConfigMap.
struct VolcanoTask {
  std::optional<int> index;  // in its task
  int tasks = 0;             // of the job, as known from the plugin svc; 0: unknown
  kube::Json size_source;    // valueFrom of the variable with the size of the only task, or null
};
VolcanoTask VolcanoTaskOf(const kube::Json& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_JOBS_CONTROLLER_VARIABLES_H_
