// SPDX-License-Identifier: Apache-2.0
//
// Interprets what kubelets offer: HCAs, or shares of HCAs.
#ifndef RAILHEAD_FABRIC_DISCOVERY_OFFERS_H_
#define RAILHEAD_FABRIC_DISCOVERY_OFFERS_H_

#include <map>
#include <optional>
#include <vector>

#include "fabric/discovery/node_rails.h"
#include "fabric/model/fabric_model.h"

namespace railhead::fabric {

// Returns true if the offered number is all that is known of a node's NICs.
bool OfferedAlone(const NodeRails& node);

// Converts an offered number to HCAs. Nodes with known NICs define it for others that offer the
// same number. Otherwise up to 32 are HCAs, the most a machine has, and more are shares.
class Offers {
 public:
  explicit Offers(const std::vector<NodeRails>& nodes);

  // Returns nullopt for shares of an unknown number of HCAs.
  std::optional<int> Hcas(int offered) const;

 private:
  std::map<int, int> shared_;  // HCAs by the number of shares
};

// Returns the number of a node's live HCAs that no further pod can get, when pods hold `used` of
// `offered`. Shares are available while kubelet has one left, of any HCA.
int UsedHcas(const FabricNode& node, int offered, int used);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_OFFERS_H_
