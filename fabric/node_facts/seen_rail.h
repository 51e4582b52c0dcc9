// SPDX-License-Identifier: Apache-2.0
//
// A rail of a node, as its agent publishes it. Read by ReadNodeFacts.
#ifndef RAILHEAD_FABRIC_NODE_FACTS_SEEN_RAIL_H_
#define RAILHEAD_FABRIC_NODE_FACTS_SEEN_RAIL_H_

#include <string>
#include <tuple>
#include <vector>

namespace railhead::fabric {

// InfiniBand port numbers are bytes; 255 is reserved.
inline constexpr int kMaxIbPort = 254;

// A rail from the facts of the node's agent.
struct SeenRail {
  int rail = 0;
  std::string device;  // "mlx5_0"
  std::string netdev;  // "ens1np0"; empty: none
  double gbps = 0;
  bool usable = true;
  std::string reason;               // why it is not usable: all faults, the gravest first
  int port = 0;                     // port of the HCA that carries its data; 0: unknown
  std::vector<std::string> slaves;  // interfaces of `netdev`, if that is a bond
  std::string link_layer = {};      // "InfiniBand" or "Ethernet"; empty: unknown

  bool operator==(const SeenRail&) const = default;
  // Any order, to find those that are alike.
  auto Key() const {
    return std::tie(rail, device, netdev, gbps, usable, reason, port, slaves, link_layer);
  }
  bool operator<(const SeenRail& other) const { return Key() < other.Key(); }
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_NODE_FACTS_SEEN_RAIL_H_
