// SPDX-License-Identifier: Apache-2.0
//
// Explains why a job's pods do not run yet, from a cluster's objects. Pure: runs the operator's
// planner.
#ifndef RAILHEAD_OPERATOR_GANGS_WHY_H_
#define RAILHEAD_OPERATOR_GANGS_WHY_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/json.h"
#include "operator/objects/rdma_resources.h"
#include "placement/reasons.h"

namespace railhead::op::gangs {

// API objects. Pass all of the cluster, since a gang's room depends on the others.
struct ClusterObjects {
  std::vector<kube::Json> nodes;
  std::vector<kube::Json> pods;
  std::vector<kube::Json> events;      // optional
  std::vector<kube::Json> topologies;  // FabricTopologies; optional
  RdmaResources rdma = {};             // from the operator's ConfigMap, if present
};

// Sorts the objects of a list, or one object, by kind; skips others.
void Collect(kube::Json document, ClusterObjects& objects);

struct WhyAnswer {
  std::string space;
  std::string name;
  std::string kind;  // "Gang", or the kind of the owner of other pods
  // "running", "incomplete", "waiting", "placed", "timed-out", "pending" or "finished". A gang that
  // fits is "placed" if the operator is about to start it, else "pending".
  std::string state;
  size_t pods = 0;
  size_t gated = 0;  // by the gang's gate
  size_t bound = 0;
  std::string message;
  std::vector<placement::Reason> reasons;
  // The message is the reasons and these, if there are reasons; else these begin it.
  std::vector<std::string> notes;
  // Messages of the scheduler about pods without a node, with the number of pods.
  std::vector<std::pair<std::string, size_t>> scheduler;
  // The operator's latest Events: reason and message, oldest first.
  std::vector<std::pair<std::string, std::string>> told;

  // Returns whether an obstacle exists.
  bool pending() const { return state != "running" && state != "placed" && state != "finished"; }
};

// `job`: name of a gang, of the pods' owner, or of a pod; only in namespace `space` if not empty.
// Returns NotFound if there is none, and InvalidArgument with the candidates if there are several.
absl::StatusOr<WhyAnswer> Why(const ClusterObjects& objects, const std::string& space,
                              const std::string& job, absl::Time now);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_WHY_H_
