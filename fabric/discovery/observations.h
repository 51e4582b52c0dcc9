// SPDX-License-Identifier: Apache-2.0
//
// What sources say about a fabric, each by itself: nothing is decided here.
#ifndef RAILHEAD_FABRIC_DISCOVERY_OBSERVATIONS_H_
#define RAILHEAD_FABRIC_DISCOVERY_OBSERVATIONS_H_

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace railhead::fabric {

// In the order of trust: a subnet is walked port by port; an LLDP neighbour speaks for itself.
enum class Evidence { kInfiniBand, kLldp };

// What a device of a network says it is. A host that forwards packets, as each Kubernetes node
// does, looks like a switch to LLDP: kForwarder, unless it says that it runs what hosts run.
enum class DeviceKind { kSwitch, kForwarder, kHost };

struct SeenDevice {
  std::string id;    // unique among all sources: an LLDP chassis, an InfiniBand GUID
  std::string name;  // a switch's, or the host's that the device is in; empty where it says none
  DeviceKind kind = DeviceKind::kHost;

  bool operator==(const SeenDevice&) const = default;
};

// One end of a cable: `port` is the network interface or the HCA of a host ("mlx5_0"), the port of
// a switch.
struct SeenEnd {
  std::string device;  // a SeenDevice's id
  std::string port;

  bool operator==(const SeenEnd&) const = default;
  bool operator<(const SeenEnd& other) const {
    return std::tie(device, port) < std::tie(other.device, other.port);
  }
};

struct SeenLink {
  SeenEnd near;  // who tells it
  SeenEnd far;
  Evidence evidence = Evidence::kLldp;
  double gbps = 0;    // 0: not told
  std::string where;  // "lldp.json:12", for messages

  bool operator==(const SeenLink&) const = default;
};

// A rail as the node's agent tells it.
struct SeenRail {
  int rail = 0;
  std::string device;  // "mlx5_0"
  std::string netdev;  // "ens1np0"; empty where it has none
  double gbps = 0;
  bool usable = true;
  std::string reason;               // why it is not
  int port = 0;                     // the HCA's port that carries its data; 0: not told
  std::vector<std::string> slaves;  // where `netdev` is a bond: its interfaces

  bool operator==(const SeenRail&) const = default;
};

// Where labels say that a node is.
struct SeenPlace {
  std::string scheme;                                       // whose labels: "AWS"
  std::vector<std::pair<std::string, std::string>> levels;  // name and value, outermost first

  bool operator==(const SeenPlace&) const = default;
};

// A node as Kubernetes knows it.
struct SeenNode {
  std::string name;
  std::string uid;                             // of the object; empty: the source leaves it out
  int gpus = 0;                                // as the kubelet offers them
  int hcas = 0;                                // or shares of them: more than it has
  std::string unschedulable;                   // why no pod may be put there; empty: pods may
  std::optional<std::vector<SeenRail>> rails;  // of the agent's facts; nothing: it has told none
  std::string facts_fault;                     // why what the agent told cannot be read
  std::vector<SeenPlace> places;
  std::string where;

  bool operator==(const SeenNode&) const = default;
};

// What a pod holds.
struct SeenUse {
  std::string node;
  int gpus = 0;
  int hcas = 0;  // or shares of them

  bool operator==(const SeenUse&) const = default;
};

// How somebody names the RDMA devices of nodes (rail_names.h).
struct SeenRailNames {
  std::string name;     // of the object that says it
  std::string pattern;  // "rdma_r%rail_id%"
  int devices = 1;      // of a rail: each plane of each of its NICs
  std::string where;

  bool operator==(const SeenRailNames&) const = default;
};

struct Observations {
  std::vector<SeenDevice> devices;
  std::vector<SeenLink> links;
  std::vector<SeenNode> nodes;
  std::vector<SeenUse> uses;
  std::vector<SeenRailNames> rail_names;

  bool operator==(const Observations&) const = default;
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_OBSERVATIONS_H_
