// SPDX-License-Identifier: Apache-2.0
//
// Counts at which switches the NICs of one kind of machine are.
#ifndef RAILHEAD_FABRIC_DISCOVERY_NIC_WIRING_H_
#define RAILHEAD_FABRIC_DISCOVERY_NIC_WIRING_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabric/discovery/network.h"

namespace railhead::fabric {

class NicWiring {
 public:
  // Counts by network (JoinedNetworks, which must outlive this), or by switch if null.
  explicit NicWiring(const std::vector<int>* network_of) : network_of_(network_of) {}

  // Adds a machine of the kind.
  void Add(const Nics& nics);

  // Returns true if machines of the kind have this NIC where the cable leads, false if another;
  // nullopt if none of them has a NIC there. Rare miswired cables do not count.
  std::optional<bool> Has(const std::string& nic, const Cable& cable) const;

  int PlaceOf(const Cable& cable) const;

 private:
  struct At {
    std::map<std::string, size_t> count;
    size_t most = 0;
  };
  const std::vector<int>* network_of_;
  std::map<int, At> at_;
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_NIC_WIRING_H_
