// SPDX-License-Identifier: Apache-2.0
//
// A cluster made up for tests: its objects as the API has them, and a scheduler that binds.
#ifndef RAILHEAD_OPERATOR_GANGS_TESTING_SMALL_CLUSTER_H_
#define RAILHEAD_OPERATOR_GANGS_TESTING_SMALL_CLUSTER_H_

#include <map>
#include <string>
#include <vector>

#include "kube/json.h"
#include "operator/gangs/planner.h"

namespace railhead::op::gangs::testing {

struct PodSpec {
  std::string name = {};
  std::string gang = {};   // empty: of none
  int size = 0;            // of the gang
  std::string owner = {};  // a Job's name, and its uid; empty: none
  int index = -1;          // in its Job
  int hcas = 8;            // and as many GPUs
  std::string require_level = {};
  int priority = 0;
  int second = 0;            // of its creation
  std::string kind = "Job";  // of its owner
};

kube::Json NodeObject(const std::string& name, const std::string& spine, const std::string& leaf);
kube::Json PodObject(const PodSpec& spec);

class SmallCluster {
 public:
  void AddNode(const std::string& name, const std::string& spine, const std::string& leaf) {
    nodes[name] = NodeObject(name, spine, leaf);
  }
  // With a uid that no other pod ever had.
  void AddPod(const PodSpec& spec);

  std::vector<NodeValue> Nodes() const;
  std::vector<PodValue> Pods() const;
  std::vector<Decision> Decide(const Promises& promises = {}, const RefusedNodes& refused = {},
                               const DecideOptions& options = {}) const;
  // As the API server applies it; false when it is refused.
  bool Release(const Assignment& assignment, const std::string& placement);
  void ReleaseAll(const std::vector<Decision>& decisions);
  // Binds every pod without gates to the node that it names, and returns how many have no room.
  int Bind();
  // HCAs of the node that pods have which are bound there, by the objects alone.
  int UsedHcas(const std::string& node) const;
  // The nodes of a gang's pods in the order of their ranks; "" for one that is gated.
  std::vector<std::string> NodesOf(const std::string& gang) const;

  std::map<std::string, kube::Json> nodes;  // by name
  std::map<std::string, kube::Json> pods;

 private:
  int serial_ = 0;
};

}  // namespace railhead::op::gangs::testing

#endif  // RAILHEAD_OPERATOR_GANGS_TESTING_SMALL_CLUSTER_H_
