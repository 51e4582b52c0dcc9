// SPDX-License-Identifier: Apache-2.0
//
// Nodes that a pod may not use for what other pods hold there, or say: ports of the node, and
// anti-affinity in both directions, as kube-scheduler reads them. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_NEIGHBOURS_H_
#define RAILHEAD_OPERATOR_GANGS_NEIGHBOURS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "operator/gangs/claims.h"
#include "operator/gangs/gang.h"
#include "operator/gangs/node_tree.h"

namespace railhead::op::gangs {

// Why nodes are not to be used, by their index.
using NodesInTheWay = std::map<size_t, std::string>;

// Most pods of a cluster say the same of others as many more: what they say is kept once, with the
// nodes where it holds.
class Neighbours {
 public:
  // `tree` must outlive this.
  explicit Neighbours(const NodeTree* tree) : tree_(tree) {}

  // The pod is on the node, or on its way there.
  void Add(size_t node, const PodValue& pod);
  // One that was added.
  void Remove(size_t node, const PodValue& pod);

  NodesInTheWay For(const StoredPod& pod) const;

 private:
  using Nodes = std::map<size_t, int>;  // how many pods there say it
  struct ByNodeAndUid {
    bool operator()(const std::pair<size_t, PodValue>& a,
                    const std::pair<size_t, PodValue>& b) const {
      return a.first != b.first ? a.first < b.first : a.second->uid < b.second->uid;
    }
  };

  // Marks all nodes that have the same value of the label as one of these.
  void ExcludeLike(const std::set<size_t>& nodes, const std::string& label, const std::string& why,
                   NodesInTheWay& in_the_way) const;

  const NodeTree* const tree_;
  std::map<HostPort, Nodes> ports_;
  std::map<KeepApart, Nodes> apart_;
  // Pods that have labels: looked at for a pod alone that keeps apart from others.
  std::multiset<std::pair<size_t, PodValue>, ByNodeAndUid> labels_;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_NEIGHBOURS_H_
