// SPDX-License-Identifier: Apache-2.0
//
// What a pod holds of its node beside resources: ports, and that others stay away. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_CLAIMS_H_
#define RAILHEAD_OPERATOR_GANGS_CLAIMS_H_

#include <string>
#include <tuple>
#include <vector>

#include "kube/json.h"
#include "operator/label_selector.h"

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

// A term of a required anti-affinity to pods.
struct KeepApart {
  LabelSelector selector;
  std::vector<std::string> spaces;  // namespaces; empty: all
  std::string topology_key;         // the label of nodes that must not be the same

  bool operator==(const KeepApart&) const = default;
  bool operator<(const KeepApart& other) const;  // any order
  bool IsAbout(const std::string& space, const Labels& labels) const;
};

struct Claims {
  std::vector<HostPort> ports;
  std::vector<KeepApart> apart;

  bool operator==(const Claims&) const = default;
  bool empty() const { return ports.empty() && apart.empty(); }
};

// Of a term that is not known in all of its parts the most that it may mean. One that cannot be
// read is left out: the API server would have refused it.
Claims ReadClaims(const kube::Json& pod);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_CLAIMS_H_
