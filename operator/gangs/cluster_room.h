// SPDX-License-Identifier: Apache-2.0
//
// Free capacity of a cluster, counted like kube-scheduler, as a fabric for the solver. Pure.
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
#include "operator/gangs/node_tree.h"
#include "operator/gangs/reservation.h"
#include "operator/objects/node_rules.h"
#include "operator/objects/resources.h"

namespace railhead::op::gangs {

// Nodes on which the scheduler recently rejected a gang's pod, by the gang's key.
using RefusedNodes = std::map<std::string, std::set<std::string>>;

// Excluded nodes, and the reason.
struct Exclusion {
  std::string why;
  std::vector<char> nodes;  // by node of the tree: whether it is excluded
};
// If several exclude a node, the first gives the reason.
using Outside = std::vector<std::shared_ptr<const Exclusion>>;

// Computes room for gangs. Gangs with equal requests share the counts. Updates recount only nodes
// that changed, also between rounds.
class ClusterRoom {
 public:
  // `tree` must outlive the room.
  explicit ClusterRoom(const NodeTree* tree, RdmaResources rdma = {});
  ClusterRoom(const NodeTree* tree, const std::vector<PodValue>& pods, const Promises& promises,
              RdmaResources rdma = {})
      : ClusterRoom(tree, std::move(rdma)) {
    Update(pods, promises);
  }

  // Sets all current pods. Pods occupy the node they are bound to or were sent to. Pods are
  // compared by address, so unchanged values are cheap.
  void Update(const std::vector<PodValue>& pods, const Promises& promises);
  // Reads the tree's new value of this node, with the same hostname. Returns false if it has a
  // resource that no node had; create a new room then.
  bool Refresh(size_t node);

  // Returns whether one domain of the level, or without a level all nodes together, has room for
  // this number of the gang's pods. Cheap; if false, no solver run is needed.
  bool HasRoom(const Gang& gang, int pods, const std::set<std::string>& refused,
               const Outside& outside, std::optional<int> level);
  // Returns the fabric for the gated pods of a gang, which are identical. A node accepts at most as
  // many as fit by all their requests; a node that accepts none contains the reason. Valid until
  // the next call of any method.
  const fabric::FabricModel& ModelFor(const Gang& gang, const std::set<std::string>& refused,
                                      const Outside& outside);

  // Returns the maximum number of the gang's pods with such room if all pods with HCAs or GPUs
  // ended. Other pods, such as those of DaemonSets, are assumed to stay.
  int64_t MostRoomWhenFree(const Gang& gang, std::optional<int> level);
  // Returns, by node, the number of the gang's pods that fit now, and that would fit then.
  std::vector<NodeOutlook> OutlookFor(const Gang& gang, const std::set<std::string>& refused);

  // Adds or removes one pod on the node (index in the tree) until the next Update.
  void Take(size_t node, const PodValue& pod);
  void GiveBack(size_t node, const PodValue& pod);

  const NodeTree& tree() const { return *tree_; }
  const RdmaResources& rdma() const { return rdma_; }
  const std::vector<std::vector<int>>& domains() const { return domains_; }  // [level][node]
  const std::map<std::string, std::string>& node_of_hostname() const { return hostnames_; }
  // Returns the index of the node; nullopt if it is not in the tree.
  std::optional<size_t> IndexOf(const std::string& node) const;

 private:
  // Properties of a node that are equal for all pods.
  struct Facts {
    int gpus = 0;
    int hcas = 0;   // as in the model
    int alive = 0;  // live ones; negative if more are dead
    bool usable = false;
    bool shared = false;  // it offers more HCAs than are alive
    // It offers more HCAs than it has rails, so that several pods may hold one.
    bool more_than_rails = false;
  };
  // Pods of one shape that fit, by node and domain; with sameRails, those that get the same rails.
  struct Count {
    std::vector<int> of_node;
    std::vector<std::vector<int64_t>> of_domain;  // [level][domain]
    int64_t all = 0;
  };
  // Nodes that pods with these rules may use.
  struct Allowed {
    NodeRules rules;
    std::vector<char> nodes;
  };
  // The fabric for pods of a shape, apart from nodes masked for one gang.
  struct Built {
    fabric::FabricModel model;
    size_t as_of = 0;  // number of changes applied
    uint64_t used_at = 0;
    std::vector<std::pair<size_t, std::string>> masked;  // nodes, with their original reason
  };
  // Pods with equal requests, which have equal room.
  struct Shape {
    SharedValue<Resources> requests;
    Amounts amounts;  // of `requests`
    bool one_on_a_node = false;
    placement::PlacementRequest request;  // only the numbers of GPUs and HCAs, and sameRails
    std::shared_ptr<Allowed> allowed;

    Count now;
    std::unique_ptr<Count> when_free;  // null until needed
    size_t as_of = 0;                  // number of changes counted
    uint64_t used_at = 0;              // for eviction
    std::unique_ptr<Built> built;      // null until needed
  };
  // A pod that occupies room.
  struct Held {
    PodValue pod;
    size_t node = 0;
    Amounts amounts;
    uint64_t round = 0;  // round in which it was last seen
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
  // Returns the node for this shape.
  fabric::FabricNode Describe(const Shape& shape, size_t node) const;
  // Calls `exclude(node, why, whatever)` for each excluded node, some more than once. If `whatever`
  // is true, the node's own reason is irrelevant.
  template <typename Exclude>
  void ForEachExcluded(const Gang& gang, const std::set<std::string>& refused,
                       const Outside& outside, Exclude exclude) const;
  static int64_t MostIn(const Count& count, std::optional<int> level);

  const NodeTree* const tree_;
  const RdmaResources rdma_;
  const std::vector<std::vector<int>> domains_;
  std::unordered_map<std::string, size_t> indices_;  // by name
  std::map<std::string, std::string> hostnames_;     // names by hostname label
  std::vector<Facts> facts_;                         // by node
  Neighbours neighbours_;
  AmountTable table_;    // with all pods
  AmountTable staying_;  // with pods without devices
  std::unordered_map<const StoredPod*, Held> held_;
  std::vector<Trial> trials_;  // since the last Update
  uint64_t round_ = 0;

  std::vector<size_t> changes_;  // changed nodes, in order
  std::vector<std::unique_ptr<Shape>> shapes_;
  uint64_t uses_ = 0;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_CLUSTER_ROOM_H_
