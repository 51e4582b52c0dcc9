// SPDX-License-Identifier: Apache-2.0
//
// Which NICs of a kind of machine are at which switches.
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
  // By networks (JoinedNetworks, which must outlive this), or where null, by switches.
  explicit NicWiring(const std::vector<int>* network_of) : network_of_(network_of) {}

  // A machine of the kind.
  void Add(const Nics& nics);

  // Whether machines of the kind have the NIC where this cable leads; nothing: they have none
  // there. A cable of one that hangs wrong does not count where others hang right.
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
