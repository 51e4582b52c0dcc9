// SPDX-License-Identifier: Apache-2.0
//
// What the controllers of training jobs write into their pods about the job: which pods work
// together, how many they are, and in which order. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_WORKLOAD_H_
#define RAILHEAD_OPERATOR_GANGS_WORKLOAD_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "kube/json.h"

namespace railhead::op::gangs {

struct Workload {
  std::string kind;  // "JobSet", "LeaderWorkerSet", "PyTorchJob", "PodGroup", ...
  std::string name;  // for people
  // All of the job, and the part of it whose pods are alike and work together. In one namespace
  // unlike those of every other job.
  std::string whole;
  std::string part;
  // Which try of the part a pod belongs to; pods of an earlier one are on their way out. Empty: its
  // controller does not number them.
  std::string attempt;
  std::optional<int> size;   // of the part, in pods; nothing: the pods do not say it
  std::optional<int> index;  // in the part
};

// The value of a variable of the first container that sets it to a text; empty: none does.
std::string VariableOf(const kube::Json& pod, absl::string_view name);

// The place of a pod among all `pods` of the Jobs of its JobSet's replicatedJob, whose labels it
// has: the pods of Jobs with a smaller job-index come before. `index`: its place in its own Job.
// Nothing where these contradict each other.
std::optional<int> IndexInReplicatedJob(const kube::Json& pod, int pods, int index);

// Whether kube-scheduler places the pod together with all of its PodGroup: it is not ours to place.
bool IsInSchedulingGroup(const kube::Json& pod);

// Returns the kinds that WorkloadOf knows, and Job, in which each pod is of its own owner's gang.
std::vector<std::string> WorkloadKinds();

// Whether it is one of Kubeflow's training operator.
bool IsOfTrainingOperator(const std::string& kind);

// Of a pod, or of the template that its pods are made of. Nothing for a pod whose owner is all that
// is to be said of it.
//
//   JobSet (and TrainJob, which is made of one): a replicatedJob. The labels jobset.sigs.k8s.io/*
//     stand on Jobs and pods; how many pods one Job has stands nowhere but in the Job, so the size
//     is in the annotation railhead.io/gang-size of its template (admission/gang_gate.h).
//   LeaderWorkerSet: a group, by the labels and annotations leaderworkerset.sigs.k8s.io/*.
//   PyTorchJob, JAXJob and the like: all pods of it, by the labels training.kubeflow.org/*; how
//     many they are, and which it is, by the variables that the controller sets in containers. (A
//     TFJob says neither: evaluators do not count in TF_CONFIG.)
//   MPIJob: its workers; how many they are nobody tells them.
//   PodGroup: the pods of one spec.schedulingGroup; likewise.
std::optional<Workload> WorkloadOf(const kube::Json& pod);

// Names the part of a workload whose pods may be made of several templates, one of which may ask
// for no RDMA: the same for all pods of one try of it. Empty: its pods are all alike.
std::string PartOfSeveralTemplates(const Workload& workload);

// Returns the annotation by which the controller of a JobSet or LeaderWorkerSet itself keeps the
// pods of one Job or group in one domain, and makes the others only when the first has a node.
// Empty: the pod has none of them.
std::string ExclusiveTopologyOf(const kube::Json& pod);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_WORKLOAD_H_
