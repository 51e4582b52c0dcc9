// SPDX-License-Identifier: Apache-2.0
//
// Nodes excluded for a pod by other pods: host ports, and anti-affinity in both directions, as
// kube-scheduler interprets them. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_NEIGHBOURS_H_
#define RAILHEAD_OPERATOR_GANGS_NEIGHBOURS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "operator/gangs/gang.h"
#include "operator/gangs/node_tree.h"
#include "operator/objects/claims.h"

namespace railhead::op::gangs {

// Reasons by node index.
using NodesInTheWay = std::map<size_t, std::string>;

// Index of claims by node. Most pods have claims equal to those of many others, so each distinct
// claim is stored once with its nodes.
class Neighbours {
 public:
  // `tree` must outlive this.
  explicit Neighbours(const NodeTree* tree) : tree_(tree) {}

  // Adds a pod that is bound or was sent to the node.
  void Add(size_t node, const PodValue& pod);
  // Removes a pod that was added.
  void Remove(size_t node, const PodValue& pod);

  NodesInTheWay For(const StoredPod& pod) const;

 private:
  using Nodes = std::map<size_t, int>;  // number of pods with the claim
  struct ByNodeAndUid {
    bool operator()(const std::pair<size_t, PodValue>& a,
                    const std::pair<size_t, PodValue>& b) const {
      return a.first != b.first ? a.first < b.first : a.second->uid < b.second->uid;
    }
  };

  // Excludes all nodes whose value of the label equals that of one of these.
  void ExcludeLike(const std::set<size_t>& nodes, const std::string& label, const std::string& why,
                   NodesInTheWay& in_the_way) const;

  const NodeTree* const tree_;
  std::map<HostPort, Nodes> ports_;
  std::map<KeepApart, Nodes> apart_;
  // Pods with labels; only searched for a pod with an anti-affinity.
  std::multiset<std::pair<size_t, PodValue>, ByNodeAndUid> labels_;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_NEIGHBOURS_H_
