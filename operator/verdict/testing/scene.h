// SPDX-License-Identifier: Apache-2.0
//
// Test fixture: a cluster, a job and the reports of its runtimes, as API and pods show them. Tests
// modify it.
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

// An Indexed Job "train" of four pods with 8 GPUs and 8 HCAs each. They have run for an hour on
// nodes n0 to n3 over InfiniBand, with a profile of generation 2, without faults.
struct Scene {
  Scene();

  kube::Json pods;   // by rank; each a Pod
  kube::Json nodes;  // by the number in its name
  std::map<std::string, ProfileFacts> profiles;
  std::vector<RuntimeReport> reports;  // by rank
  std::vector<bool> reporting;         // by rank: there is a report
  // By rank. Without a report: how long scrapes have failed.
  std::vector<absl::Duration> silence;
  std::vector<absl::Duration> unchanged;  // by rank: age of the last change
  // By rank: last report of an ended runtime; nullopt if `reporting`.
  std::vector<std::optional<RuntimeReport>> ended;
  bool from_start = true;                   // scraped since the pods started
  absl::Duration waiting = absl::Hours(1);  // of pods that the scheduler finds no node for
  std::set<std::pair<std::string, std::string>> just_lost;  // node and device
  ClusterSettings settings;
  bool comparable = true;
  std::string kind = "Job";  // of the pods' owner

  kube::Json& Container(int pod) { return pods[pod]["spec"]["containers"][0]; }
  // Adds a variable to a pod's container, set by the user before admission.
  void UserSets(int pod, const std::string& name, const std::string& value);
  // Adds one that admission sets.
  void WeSet(int pod, const std::string& name, const std::string& value);
  // Removes all reports for the last hour, as if the programs used NCCL only.
  void WithoutReports();
  // Ends all runtimes while the pods continue: no metrics, or metrics without a rank.
  void RuntimesEnd();
  // Lets another replica lead, which has no earlier reports and gets no response.
  void LeaderChanges();
  // Makes the pod wait for a node.
  void Unschedulable(int pod, const std::string& message);

  // Return the facts as read from API and pods.
  JobFacts Job() const;
  verdict::Cluster MakeCluster() const;
  std::vector<PodFinding> Judge() const;
};

}  // namespace railhead::op::verdict::testing

#endif  // RAILHEAD_OPERATOR_VERDICT_TESTING_SCENE_H_
