// SPDX-License-Identifier: Apache-2.0
//
// A cluster, a job and what its runtimes report, as the API and the pods would show them, for tests
// to spoil.
#ifndef RAILHEAD_OPERATOR_VERDICT_TESTING_SCENE_H_
#define RAILHEAD_OPERATOR_VERDICT_TESTING_SCENE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
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
  // By rank: what it had reported when its runtime ended; nothing as long as `reporting`.
  std::vector<std::optional<RuntimeReport>> ended;
  bool from_start = true;                   // the pods have been asked since they started
  absl::Duration waiting = absl::Hours(1);  // of pods that the scheduler finds no node for
  std::set<std::pair<std::string, std::string>> just_lost;  // node and device
  ClusterSettings settings;
  bool comparable = true;
  std::string kind = "Job";  // of what made the pods

  kube::Json& Container(int pod) { return pods[pod]["spec"]["containers"][0]; }
  // Adds a variable to a pod's container: what the user had set before it was admitted.
  void UserSets(int pod, const std::string& name, const std::string& value);
  // Adds one that admission has set.
  void WeSet(int pod, const std::string& name, const std::string& value);
  // Nobody reports, as with programs that use NCCL alone, and has not for an hour.
  void WithoutReports();
  // The runtimes have ended, and the pods go on: pages are gone, or name no rank any more.
  void RuntimesEnd();
  // Another replica leads, which has not heard what was said before: nobody it asks answers.
  void LeaderChanges();
  // The pod waits for a node.
  void Unschedulable(int pod, const std::string& message);

  // What the API and the pods show, read as in a cluster.
  JobFacts Job() const;
  verdict::Cluster MakeCluster() const;
  std::vector<Finding> Judge() const;
};

}  // namespace railhead::op::verdict::testing

#endif  // RAILHEAD_OPERATOR_VERDICT_TESTING_SCENE_H_
