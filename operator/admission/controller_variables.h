// SPDX-License-Identifier: Apache-2.0
//
// What the controllers of training jobs tell the containers of their pods by variables of other
// names than RANK, WORLD_SIZE and MASTER_ADDR. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_CONTROLLER_VARIABLES_H_
#define RAILHEAD_OPERATOR_ADMISSION_CONTROLLER_VARIABLES_H_

#include <optional>
#include <string>

#include "kube/json.h"
#include "operator/gangs/workload.h"

namespace railhead::op {

// A pod of Kubeflow's training operator. JAXJob: PROCESS_ID, NUM_PROCESSES and COORDINATOR_ADDRESS.
// TFJob: TF_CONFIG; the chief (or master) comes before the workers, and parameter servers and
// evaluators are not ranks. PaddleJob without a master: the label replica-index and PADDLE_NNODES.
struct KubeflowRank {
  bool is_rank = true;                     // false: a parameter server, an evaluator and the like
  std::optional<int> rank = std::nullopt;  // all three or none
  std::optional<int> world = std::nullopt;
  std::string master = {};
};
KubeflowRank KubeflowRankOf(const kube::Json& pod, const gangs::Workload& job);

// A pod of a Volcano Job. The plugin env sets VC_TASK_INDEX; the plugin svc sets VC_TASK_NUM for
// each task, from a ConfigMap.
struct VolcanoTask {
  std::optional<int> index;  // in its task
  int tasks = 0;             // of the job, as far as the plugin svc says; 0: it says nothing
  kube::Json size_source;    // valueFrom of the variable with the size of the only task, or null
};
VolcanoTask VolcanoTaskOf(const kube::Json& pod);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_CONTROLLER_VARIABLES_H_
