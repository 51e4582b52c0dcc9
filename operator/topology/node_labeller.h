// SPDX-License-Identifier: Apache-2.0
//
// Maintains the labels that give a node's place, by server-side apply. Used by TopologyController.
#ifndef RAILHEAD_OPERATOR_TOPOLOGY_NODE_LABELLER_H_
#define RAILHEAD_OPERATOR_TOPOLOGY_NODE_LABELLER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kube/client.h"
#include "operator/objects/label_selector.h"

namespace railhead::topology {

// Each write contains the node's UID, so that a deleted node is not created. Nodes without a place
// lose the labels written here. Labels of other field managers stay and cause no further write.
//
// Rights needed: patch nodes.
class NodeLabeller {
 public:
  using Labels = op::Labels;
  struct Node {
    std::string name;
    std::string uid;
    Labels published;  // its labels railhead.io/topology-*
  };

  // `api` must outlive this. `leads` is called before each write.
  NodeLabeller(kube::Api* api, std::function<bool()> leads);

  // `wanted`: labels by node name; nodes not in it must have none. Returns the first error. Stops
  // if the server is away.
  absl::Status Write(const std::vector<Node>& nodes, const std::map<std::string, Labels>& wanted);
  // Call after losing leadership: forgets what was written, since another leader may change it.
  void Forget() { written_.clear(); }

 private:
  // Last write to a node, and the labels that the node had then.
  struct Written {
    std::string uid;
    Labels wanted;
    Labels found;
  };

  kube::Api* const api_;
  const std::function<bool()> leads_;
  std::map<std::string, Written> written_;  // by node
};

}  // namespace railhead::topology

#endif  // RAILHEAD_OPERATOR_TOPOLOGY_NODE_LABELLER_H_
