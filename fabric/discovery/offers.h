// SPDX-License-Identifier: Apache-2.0
//
// What kubelets offer: HCAs, or shares of them, several for each HCA.
#ifndef RAILHEAD_FABRIC_DISCOVERY_OFFERS_H_
#define RAILHEAD_FABRIC_DISCOVERY_OFFERS_H_

#include <map>
#include <optional>
#include <vector>

#include "fabric/discovery/node_rails.h"
#include "fabric/model/fabric_model.h"

namespace railhead::fabric {

// Whether what Kubernetes offers is all that is known of a node's NICs.
bool OfferedAlone(const NodeRails& node);

// How many HCAs stand behind a number of them that is offered. Nodes whose NICs are known tell it
// of others that offer as many; else up to 32 are HCAs, as many as a machine has, and more are
// shares.
class Offers {
 public:
  explicit Offers(const std::vector<NodeRails>& nodes);

  // Nothing: they are shares, and nobody tells of how many HCAs.
  std::optional<int> Hcas(int offered) const;

 private:
  std::map<int, int> shared_;  // HCAs by the number of shares
};

// Of a node's HCAs that are alive, those that no further pod can have when pods hold `used` of the
// `offered` ones. A share can be had while the kubelet has one left, whichever HCA's it is.
int UsedHcas(const FabricNode& node, int offered, int used);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_OFFERS_H_
