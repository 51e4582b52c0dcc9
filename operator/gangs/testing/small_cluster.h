// SPDX-License-Identifier: Apache-2.0
//
// A small test cluster: API objects, and a scheduler that binds.
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
  std::string gang = {};   // empty: none
  int size = 0;            // of the gang
  std::string owner = {};  // name and uid of a Job; empty: none
  int index = -1;          // in its Job
  int hcas = 8;            // also the number of GPUs
  std::string require_level = {};
  int priority = 0;
  int second = 0;            // of its creation time
  std::string kind = "Job";  // of its owner
};

kube::Json NodeObject(const std::string& name, const std::string& spine, const std::string& leaf);
kube::Json PodObject(const PodSpec& spec);

class SmallCluster {
 public:
  void AddNode(const std::string& name, const std::string& spine, const std::string& leaf) {
    nodes[name] = NodeObject(name, spine, leaf);
  }
  // Adds a pod with a new uid.
  void AddPod(const PodSpec& spec);

  std::vector<NodeValue> Nodes() const;
  std::vector<PodValue> Pods() const;
  std::vector<Decision> Decide(const Promises& promises = {}, const RefusedNodes& refused = {},
                               const DecideOptions& options = {}) const;
  // Applies the patch like the API server; false if rejected.
  bool Release(const Assignment& assignment, const std::string& placement);
  void ReleaseAll(const std::vector<Decision>& decisions);
  // Binds each pod without gates to the node in its nodeSelector; returns how many have no room.
  int Bind();
  // Returns the HCAs of pods bound to the node, from the objects only.
  int UsedHcas(const std::string& node) const;
  // Returns the nodes of a gang's pods in rank order; "" for a gated pod.
  std::vector<std::string> NodesOf(const std::string& gang) const;

  std::map<std::string, kube::Json> nodes;  // by name
  std::map<std::string, kube::Json> pods;

 private:
  int serial_ = 0;
};

}  // namespace railhead::op::gangs::testing

#endif  // RAILHEAD_OPERATOR_GANGS_TESTING_SMALL_CLUSTER_H_
