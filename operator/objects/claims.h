// SPDX-License-Identifier: Apache-2.0
//
// Claims of a pod on its node beside resources: host ports and anti-affinity. Pure.
#ifndef RAILHEAD_OPERATOR_OBJECTS_CLAIMS_H_
#define RAILHEAD_OPERATOR_OBJECTS_CLAIMS_H_

#include <string>
#include <tuple>
#include <vector>

#include "kube/json.h"
#include "operator/objects/label_selector.h"
#include "operator/objects/label_set.h"

namespace railhead::op::gangs {

struct HostPort {
  int port = 0;
  std::string protocol;  // "TCP", ...
  std::string address;   // empty: all of the node

  bool operator==(const HostPort&) const = default;
  bool operator<(const HostPort& other) const {
    return std::tie(port, protocol, address) < std::tie(other.port, other.protocol, other.address);
  }
  bool Collides(const HostPort& other) const;
};

// A term of a required pod anti-affinity.
struct KeepApart {
  LabelSelector selector;
  std::vector<std::string> spaces;  // namespaces; empty: all
  std::string topology_key;         // node label that must differ

  bool operator==(const KeepApart&) const = default;
  bool operator<(const KeepApart& other) const;  // arbitrary order
  bool IsAbout(const std::string& space, const LabelSet& labels) const;
};

struct Claims {
  std::vector<HostPort> ports;
  std::vector<KeepApart> apart;

  bool operator==(const Claims&) const = default;
  bool operator<(const Claims& other) const {
    return std::tie(ports, apart) < std::tie(other.ports, other.apart);
  }
  bool empty() const { return ports.empty() && apart.empty(); }
};

// Returns claims that keep all other pods off its node, for a pod whose own are not known.
Claims WidestClaims();

// Reads the claims of a pod. For a term with unknown parts, returns its widest possible meaning.
// Skips an unreadable term, which the API server would have rejected.
Claims ReadClaims(const kube::Json& pod);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_OBJECTS_CLAIMS_H_
