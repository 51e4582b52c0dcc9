// SPDX-License-Identifier: Apache-2.0
//
// Why a job's pods do not run yet, out of a cluster's objects. Pure: it asks the same planner as
// the operator does.
#ifndef RAILHEAD_OPERATOR_GANGS_WHY_H_
#define RAILHEAD_OPERATOR_GANGS_WHY_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/json.h"
#include "operator/rdma_resources.h"
#include "placement/reasons.h"

namespace railhead::op::gangs {

// As the API has them. All of the cluster: what a gang has room for depends on the others.
struct ClusterObjects {
  std::vector<kube::Json> nodes;
  std::vector<kube::Json> pods;
  std::vector<kube::Json> events;      // may be left out
  std::vector<kube::Json> topologies;  // FabricTopologies; likewise
  RdmaResources rdma = {};             // by the operator's ConfigMap, if it is there
};

// Sorts the objects of a list, or one object, by their kinds; others are left out.
void Collect(kube::Json document, ClusterObjects& objects);

struct WhyAnswer {
  std::string space;
  std::string name;
  std::string kind;   // "Gang", or that of the owner of pods that are none
  std::string state;  // "running", "incomplete", "waiting", "placed", "timed-out" or "pending"
  size_t pods = 0;
  size_t gated = 0;  // by the gang's gate
  size_t bound = 0;
  std::string message;
  std::vector<placement::Reason> reasons;
  // What the scheduler says of pods without a node, and of how many.
  std::vector<std::pair<std::string, size_t>> scheduler;
  // What the operator has told last: reason and message, oldest first.
  std::vector<std::pair<std::string, std::string>> told;

  // Whether something is in the way.
  bool pending() const { return state != "running" && state != "placed"; }
};

// `job` is the name of a gang, of the pods' owner, or of a pod; with `space` in that namespace
// alone. NotFound when there is none; InvalidArgument when there are several, and which.
absl::StatusOr<WhyAnswer> Why(const ClusterObjects& objects, const std::string& space,
                              const std::string& job, absl::Time now);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_WHY_H_
