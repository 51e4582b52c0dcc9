// SPDX-License-Identifier: Apache-2.0
//
// Job data that controllers of training jobs write into their pods: which pods work together, their
// number, and their order. Pure.
#ifndef RAILHEAD_OPERATOR_JOBS_WORKLOAD_H_
#define RAILHEAD_OPERATOR_JOBS_WORKLOAD_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "kube/json.h"

namespace railhead::op::gangs {

struct Workload {
  std::string kind;  // "JobSet", "LeaderWorkerSet", "PyTorchJob", "PodGroup", ...
  std::string name;  // for users
  // Key of the whole job, and of the part whose pods are identical and work together. Unique per
  // namespace.
  std::string whole;
  std::string part;
  // Attempt of the part that a pod belongs to; pods of earlier attempts are being removed. Empty:
  // the controller does not number them.
  std::string attempt;
  std::optional<int> size;   // of the part, in pods; nullopt: not in the pods
  std::optional<int> index;  // in the part
};

// Returns the variable's value in the first container that sets it to a string; empty if none does.
std::string VariableOf(const kube::Json& pod, absl::string_view name);

// Returns a pod's index among all `pods` of the Jobs of its JobSet's replicatedJob, from its
// labels: pods of Jobs with a smaller job-index come first. `index`: in its own Job. Returns
// nullopt if these contradict each other.
std::optional<int> IndexInReplicatedJob(const kube::Json& pod, int pods, int index);

// Returns whether kube-scheduler places the pod with its PodGroup, so that the operator does not.
bool IsInSchedulingGroup(const kube::Json& pod);

// Returns the kinds that WorkloadOf knows, and Job, where each pod is in its direct owner's gang.
std::vector<std::string> WorkloadKinds();

// Returns whether the kind is one of Kubeflow's training operator.
bool IsOfTrainingOperator(const std::string& kind);

// Returns the workload of a pod, or of its template; nullopt if its owner is all that is known.
//
//  JobSet (and TrainJob, which creates one): a replicatedJob, by the labels jobset.sigs.k8s.io/* on
//    Jobs and pods. Only the Job contains its number of pods, so the size is in the annotation
//    railhead.io/gang-size of its template (admission/gang_gate.h).
//  LeaderWorkerSet: a group, by the labels and annotations leaderworkerset.sigs.k8s.io/*.
//  PyTorchJob, JAXJob and similar: all of its pods, by the labels training.kubeflow.org/*. Size and
//    index come from variables that the controller sets in containers. (A TFJob gives neither:
//    TF_CONFIG does not count evaluators.)
//  MPIJob: its workers; their number is unknown.
//  PodGroup: the pods of one spec.schedulingGroup; their number is unknown.
std::optional<Workload> WorkloadOf(const kube::Json& pod);

// Returns the key of a part whose pods may have several templates, one of which may request no
// RDMA; equal for all pods of one attempt. Empty if all its pods are identical.
std::string PartOfSeveralTemplates(const Workload& workload);

// Returns the annotation by which the controller of a JobSet or LeaderWorkerSet itself keeps the
// pods of one Job or group in one domain, and creates the others only once the first has a node.
// Empty if the pod has none.
std::string ExclusiveTopologyOf(const kube::Json& pod);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_JOBS_WORKLOAD_H_
