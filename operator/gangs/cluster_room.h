// SPDX-License-Identifier: Apache-2.0
//
// What is free in a cluster, as kube-scheduler will count it, as a fabric for the solver. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_CLUSTER_ROOM_H_
#define RAILHEAD_OPERATOR_GANGS_CLUSTER_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "operator/gangs/amount_table.h"
#include "operator/gangs/gang.h"
#include "operator/gangs/neighbours.h"
#include "operator/gangs/node_rules.h"
#include "operator/gangs/node_tree.h"
#include "operator/gangs/reservation.h"
#include "operator/gangs/resources.h"

namespace railhead::op::gangs {

// Nodes where the scheduler has lately refused a pod of a gang, by the gang's key.
using RefusedNodes = std::map<std::string, std::set<std::string>>;

// Nodes that are not to be used, and why.
struct Exclusion {
  std::string why;
  std::vector<char> nodes;  // of each node of the tree whether it is one
};
// Of several that are about a node the first one says why.
using Outside = std::vector<std::shared_ptr<const Exclusion>>;

// Gangs whose pods ask for the same share what was counted for it, and of that only nodes where
// something has changed are looked at again: also from one round to the next.
class ClusterRoom {
 public:
  // `tree` must outlive the room.
  explicit ClusterRoom(const NodeTree* tree, RdmaResources rdma = {});
  ClusterRoom(const NodeTree* tree, const std::vector<PodValue>& pods, const Promises& promises,
              RdmaResources rdma = {})
      : ClusterRoom(tree, std::move(rdma)) {
    Update(pods, promises);
  }

  // All that there is now. Pods take their room on the node that they have, or that they were sent
  // to. A pod is known again by its address, so values that do not change are cheap.
  void Update(const std::vector<PodValue>& pods, const Promises& promises);
  // The tree has another value of this node, of the same hostname. False: it has what no node had;
  // make a new room.
  bool Refresh(size_t node);

  // Whether one domain of the level has room for so many pods of the gang, or without a level all
  // nodes together. Cheap: where there is not, nobody needs to weigh anything.
  bool HasRoom(const Gang& gang, int pods, const std::set<std::string>& refused,
               const Outside& outside, std::optional<int> level);
  // The fabric for the gated pods of a gang, that are alike. A node takes no more of them than it
  // has room for by all that they ask for; where it takes none it says why. True until the next
  // call of anything here.
  const fabric::FabricModel& ModelFor(const Gang& gang, const std::set<std::string>& refused,
                                      const Outside& outside);

  // The most pods of the gang that there would be such room for if all that holds HCAs or GPUs
  // ended. What holds neither, such as a pod of each node, is taken to stay.
  int64_t MostRoomWhenFree(const Gang& gang, std::optional<int> level);
  // For each node how many pods of the gang it has room for, and would have then.
  std::vector<NodeOutlook> OutlookFor(const Gang& gang, const std::set<std::string>& refused);

  // Until the next Update there is one more such pod on the node, an index of the tree's; or one
  // less.
  void Take(size_t node, const PodValue& pod);
  void GiveBack(size_t node, const PodValue& pod);

  const NodeTree& tree() const { return *tree_; }
  const RdmaResources& rdma() const { return rdma_; }
  const std::vector<std::vector<int>>& domains() const { return domains_; }  // [level][node]
  const std::map<std::string, std::string>& node_of_hostname() const { return hostnames_; }
  // The index of the node; nothing for one that is not in the tree.
  std::optional<size_t> IndexOf(const std::string& node) const;

 private:
  // What is the same of a node for all pods.
  struct Facts {
    int gpus = 0;
    int hcas = 0;   // as the model has them
    int alive = 0;  // of these; less than none where more are dead
    bool usable = false;
    bool shared = false;  // more HCAs are offered than are alive
  };
  // Of some nodes the pods of one shape that they have room for.
  struct Count {
    std::vector<int> of_node;
    std::vector<std::vector<int64_t>> of_domain;  // [level][domain]
    int64_t all = 0;
  };
  // Which nodes pods with these rules may use.
  struct Allowed {
    NodeRules rules;
    std::vector<char> nodes;
  };
  // The fabric as pods of a shape find it, but for what is masked for one gang.
  struct Built {
    fabric::FabricModel model;
    size_t as_of = 0;  // changes before that are in it
    uint64_t used_at = 0;
    std::vector<std::pair<size_t, std::string>> masked;  // nodes, and what they said before
  };
  // Pods that ask for the same find the same room.
  struct Shape {
    SharedValue<Resources> requests;
    Amounts amounts;  // the same
    bool one_on_a_node = false;
    placement::PlacementRequest request;  // the numbers of GPUs and HCAs alone
    std::shared_ptr<Allowed> allowed;

    Count now;
    std::unique_ptr<Count> when_free;  // null until somebody asks
    size_t as_of = 0;                  // changes before that are counted
    uint64_t used_at = 0;              // for what is to be forgotten
    std::unique_ptr<Built> built;      // null until somebody asks
  };
  // A pod that holds room.
  struct Held {
    PodValue pod;
    size_t node = 0;
    Amounts amounts;
    uint64_t round = 0;  // when it was last there
    bool stays = false;  // it holds no devices
  };
  struct Trial {
    size_t node = 0;
    PodValue pod;
    bool taken = false;  // else given back
  };

  std::string NodeOf(const StoredPod& pod, const Promises& promises) const;
  void Put(const Held& held);
  void Drop(const Held& held);
  void Try(size_t node, const PodValue& pod, bool taken);
  void EndTrials();

  Shape& ShapeOf(const Gang& gang);
  std::shared_ptr<Allowed> AllowedBy(const NodeRules& rules);
  Facts FactsOf(size_t node) const;
  int RoomOn(const Shape& shape, size_t node, const AmountTable& table) const;
  void CountAll(const Shape& shape, const AmountTable& table, Count& count) const;
  void CountAgain(const Shape& shape, size_t node, const AmountTable& table, Count& count) const;
  void CatchUp(Shape& shape);
  void ForgetChanges();

  Built& BuiltOf(Shape& shape);
  static void Unmask(Built& built);
  void CatchUpBuilt(Shape& shape) const;
  // The node as the shape finds it.
  fabric::FabricNode Describe(const Shape& shape, size_t node) const;
  // Calls `exclude(node, why, whatever)` for each node that is not for the gang, some more than
  // once; `whatever`: the node's own reason is of no interest.
  template <typename Exclude>
  void ForEachExcluded(const Gang& gang, const std::set<std::string>& refused,
                       const Outside& outside, Exclude exclude) const;
  static int64_t MostIn(const Count& count, std::optional<int> level);

  const NodeTree* const tree_;
  const RdmaResources rdma_;
  const std::vector<std::vector<int>> domains_;
  std::unordered_map<std::string, size_t> indices_;  // by name
  std::map<std::string, std::string> hostnames_;     // names by the hostname label
  std::vector<Facts> facts_;                         // of each node
  Neighbours neighbours_;
  AmountTable table_;    // with all pods
  AmountTable staying_;  // with pods without devices
  std::unordered_map<const StoredPod*, Held> held_;
  std::vector<Trial> trials_;  // since the last Update
  uint64_t round_ = 0;

  std::vector<size_t> changes_;  // nodes, as they changed
  std::vector<std::unique_ptr<Shape>> shapes_;
  uint64_t uses_ = 0;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_CLUSTER_ROOM_H_
