// SPDX-License-Identifier: Apache-2.0
//
// What is free in a cluster, as kube-scheduler will count it, as a fabric for the solver. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_CLUSTER_ROOM_H_
#define RAILHEAD_OPERATOR_GANGS_CLUSTER_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "operator/gangs/gang.h"
#include "operator/gangs/neighbours.h"
#include "operator/gangs/node_rules.h"
#include "operator/gangs/node_tree.h"
#include "operator/gangs/resources.h"

namespace railhead::op::gangs {

// Nodes where the scheduler has lately refused a pod of a gang, by the gang's key.
using RefusedNodes = std::map<std::string, std::set<std::string>>;

// Why a node is not to be used, by its index; empty: it may be. A function that is none: all may.
using Outside = std::function<std::string(size_t)>;

// Gangs whose pods ask for the same share what was computed for it, and of that only nodes where
// something has changed are looked at again: also from one round to the next.
class ClusterRoom {
 public:
  // `tree` must outlive the room.
  explicit ClusterRoom(const NodeTree* tree);
  ClusterRoom(const NodeTree* tree, const std::vector<PodValue>& pods, const Promises& promises)
      : ClusterRoom(tree) {
    Update(pods, promises);
  }

  // All that there is now. Pods take their room on the node that they have, or that they were sent
  // to.
  void Update(const std::vector<PodValue>& pods, const Promises& promises);

  // The fabric for the gated pods of a gang, that are alike. A node takes no more of them than it
  // has room for by all that they ask for; where it takes none it says why. True until the next
  // call of anything here.
  const fabric::FabricModel& ModelFor(const Gang& gang, const std::set<std::string>& refused,
                                      const Outside& outside);
  // How many pods of the gang all nodes together have room for, wherever they may be used.
  int64_t RoomFor(const Gang& gang);
  // How many pods of the gang each node would have room for if all that holds HCAs or GPUs there
  // ended. What holds neither, such as a pod of each node, is taken to stay.
  std::vector<int> RoomWhenFree(const Gang& gang);

  // From now on there is one more such pod on the node, an index of the tree's; or one less.
  void Take(size_t node, const PodValue& pod);
  void GiveBack(size_t node, const PodValue& pod);

  const NodeTree& tree() const { return *tree_; }
  const std::map<std::string, std::string>& node_of_hostname() const { return hostnames_; }
  // The index of the node; nothing for one that is not in the tree.
  std::optional<size_t> IndexOf(const std::string& node) const;

 private:
  // Pods that ask for the same find the same room.
  struct Shape {
    Resources requests;
    NodeRules rules;
    bool one_on_a_node = false;
    placement::PlacementRequest request;  // the numbers of GPUs and HCAs alone

    fabric::FabricModel model;
    std::vector<int> room;  // of each node, in pods
    int64_t all_room = 0;
    uint64_t as_of = 0;    // changes until then are in it
    uint64_t used_at = 0;  // for what is to be forgotten
  };

  Shape& ShapeOf(const Gang& gang);
  // The node as the shape finds it with so much in use.
  fabric::FabricNode Describe(const Shape& shape, size_t node, const Resources& used) const;
  std::string NodeOf(const StoredPod& pod, const Promises& promises) const;

  const NodeTree* const tree_;
  std::unordered_map<std::string, size_t> indices_;  // by name
  std::map<std::string, std::string> hostnames_;     // names by the hostname label
  Neighbours neighbours_;
  std::vector<Resources> used_;     // of each node
  std::vector<Resources> staying_;  // of that what pods without devices use
  uint64_t changes_ = 0;
  std::vector<uint64_t> changed_;  // of each node, when it was last
  std::vector<std::unique_ptr<Shape>> shapes_;
  uint64_t uses_ = 0;
  fabric::FabricModel part_;  // what ModelFor has last returned
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_CLUSTER_ROOM_H_
