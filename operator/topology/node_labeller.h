// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_TOPOLOGY_NODE_LABELLER_H_
#define RAILHEAD_OPERATOR_TOPOLOGY_NODE_LABELLER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kube/client.h"
#include "operator/label_selector.h"

namespace railhead::topology {

// Keeps the labels of nodes that say where they are, by server-side apply. Each write names the UID
// of its node, so that none is made that has gone. A node without a place loses the labels that it
// got here; those that somebody else put there stay, and are no reason to write again.
//
// Rights needed: patch nodes.
class NodeLabeller {
 public:
  using Labels = op::Labels;
  struct Node {
    std::string name;
    std::string uid;
    Labels published;  // labels railhead.io/topology-* that it has
  };

  // `api` must outlive this. `leads` is asked before each write.
  NodeLabeller(kube::Api* api, std::function<bool()> leads);

  // `wanted`: of each node by its name; who is not in it is to have none. The first trouble; where
  // a server is away, it is not asked for each node.
  absl::Status Write(const std::vector<Node>& nodes, const std::map<std::string, Labels>& wanted);
  // This replica does not lead any more, and does not know what others write.
  void Forget() { written_.clear(); }

 private:
  // What was written on a node as it was.
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
