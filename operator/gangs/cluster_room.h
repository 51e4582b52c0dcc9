// SPDX-License-Identifier: Apache-2.0
//
// What is free in a cluster, as kube-scheduler will count it, as a fabric for the solver. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_CLUSTER_ROOM_H_
#define RAILHEAD_OPERATOR_GANGS_CLUSTER_ROOM_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "operator/gangs/gang.h"
#include "operator/gangs/node_tree.h"
#include "operator/gangs/resources.h"

namespace railhead::op::gangs {

// Nodes where the scheduler has lately refused a pod of a gang, by the gang's key.
using RefusedNodes = std::map<std::string, std::set<std::string>>;

class ClusterRoom {
 public:
  // `tree` must outlive the room. Pods take their room on the node that they have, or that they
  // were sent to.
  ClusterRoom(const NodeTree* tree, const std::vector<PodValue>& pods, const Promises& promises);

  // The fabric for the gated pods of a gang, that are alike. A node takes no more of them than it
  // has room for by all that they ask for; where it takes none it says why. `outside` says why a
  // node, by its index, is not to be used; empty: it may be.
  fabric::FabricModel ModelFor(const Gang& gang, const std::set<std::string>& refused,
                               const std::function<std::string(size_t)>& outside) const;

  // From now on a pod with these requests is on the node, an index of the tree's.
  void Take(size_t node, const Resources& requests);

  const NodeTree& tree() const { return *tree_; }
  const std::map<std::string, std::string>& node_of_hostname() const { return hostnames_; }
  // The index of the node; nothing for one that is not in the tree.
  std::optional<size_t> IndexOf(const std::string& node) const;

 private:
  const NodeTree* const tree_;
  std::map<std::string, size_t> indices_;         // by name
  std::map<std::string, std::string> hostnames_;  // names by the hostname label
  std::vector<Resources> used_;                   // of each node
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_CLUSTER_ROOM_H_
