// SPDX-License-Identifier: Apache-2.0
//
// Nodes that a pod may not use for what other pods hold there, or say: ports of the node, and
// anti-affinity in both directions, as kube-scheduler reads them. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_NEIGHBOURS_H_
#define RAILHEAD_OPERATOR_GANGS_NEIGHBOURS_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "operator/gangs/gang.h"
#include "operator/gangs/node_tree.h"

namespace railhead::op::gangs {

// Why nodes are not to be used, by their index.
using Exclusions = std::map<size_t, std::string>;

class Neighbours {
 public:
  // `tree` must outlive this.
  explicit Neighbours(const NodeTree* tree) : tree_(tree) {}

  void Clear() {
    claims_.clear();
    labels_.clear();
  }
  // The pod is on the node, or on its way there.
  void Add(size_t node, const PodValue& pod);
  void Remove(size_t node, const PodValue& pod);

  Exclusions For(const StoredPod& pod) const;

 private:
  // Marks all nodes that have the same value of the label as this one.
  void ExcludeLike(size_t node, const std::string& label, const std::string& why,
                   Exclusions& exclusions) const;

  const NodeTree* const tree_;
  using Pods = std::vector<std::pair<size_t, PodValue>>;
  Pods claims_;  // pods that have some: few
  Pods labels_;  // pods that have some: looked at for a pod alone that keeps apart from others
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_NEIGHBOURS_H_
