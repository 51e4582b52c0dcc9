// SPDX-License-Identifier: Apache-2.0
//
// A cluster, a job and what its runtimes report, as the API and the pods would show them, for tests
// to spoil.
#ifndef RAILHEAD_OPERATOR_VERDICT_TESTING_SCENE_H_
#define RAILHEAD_OPERATOR_VERDICT_TESTING_SCENE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kube/json.h"
#include "operator/verdict/cluster.h"
#include "operator/verdict/facts.h"
#include "operator/verdict/reasons.h"

namespace railhead::op::verdict::testing {

// An Indexed Job "train" of four pods with 8 GPUs and 8 HCAs each, which run for an hour on nodes
// n0 to n3 over InfiniBand, under a profile of generation 2; nothing is wrong.
struct Scene {
  Scene();

  kube::Json pods;   // by rank; each a Pod
  kube::Json nodes;  // by the number in its name
  std::map<std::string, ProfileFacts> profiles;
  std::vector<RuntimeReport> reports;  // by rank
  std::vector<bool> reporting;         // by rank: there is a report
  // By rank. Without a report: for how long it has been asked in vain.
  std::vector<absl::Duration> silence;
  std::vector<absl::Duration> unchanged;  // by rank: for how long the report has said so
  bool comparable = true;

  kube::Json& Container(int pod) { return pods[pod]["spec"]["containers"][0]; }
  // Adds a variable to a pod's container: what the user had set before it was admitted.
  void UserSets(int pod, const std::string& name, const std::string& value);
  // Adds one that admission has set.
  void WeSet(int pod, const std::string& name, const std::string& value);
  // Nobody reports, as with programs that use NCCL alone, and has not for an hour.
  void WithoutReports();
  // The pod waits for a node.
  void Unschedulable(int pod, const std::string& message);

  // What the API and the pods show, read as in a cluster.
  JobFacts Job() const;
  verdict::Cluster MakeCluster() const;
  std::vector<Finding> Judge() const;
};

}  // namespace railhead::op::verdict::testing

#endif  // RAILHEAD_OPERATOR_VERDICT_TESTING_SCENE_H_
