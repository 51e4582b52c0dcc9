// SPDX-License-Identifier: Apache-2.0
//
// Observations of sources about a fabric, uninterpreted. Written by readers, merged by
// FuseObservations.
#ifndef RAILHEAD_FABRIC_DISCOVERY_OBSERVATIONS_H_
#define RAILHEAD_FABRIC_DISCOVERY_OBSERVATIONS_H_

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/shared_list.h"
#include "fabric/node_facts/seen_rail.h"

namespace railhead::fabric {

// In order of trust: a subnet is walked port by port; an LLDP neighbour describes itself.
enum class Evidence { kInfiniBand, kLldp };

// Self-description of a device. A host that forwards packets, as each Kubernetes node does, looks
// like a switch to LLDP: kForwarder, unless it reports host software. kUnknown: it sends neither a
// name nor capabilities by LLDP, like the firmware of NICs, and few switches.
enum class DeviceKind { kUnknown, kSwitch, kForwarder, kHost };

struct SeenDevice {
  std::string id;    // unique over all sources: LLDP chassis, InfiniBand GUID
  std::string name;  // of the switch, or of the device's host; empty: unknown
  DeviceKind kind = DeviceKind::kHost;

  bool operator==(const SeenDevice&) const = default;
};

// One end of a cable. `port` is a host's network interface or HCA ("mlx5_0"), or a switch port.
struct SeenEnd {
  std::string device;  // id of a SeenDevice
  std::string port;

  bool operator==(const SeenEnd&) const = default;
  bool operator<(const SeenEnd& other) const {
    return std::tie(device, port) < std::tie(other.device, other.port);
  }
};

struct SeenLink {
  SeenEnd near;  // the reporting end
  SeenEnd far;
  Evidence evidence = Evidence::kLldp;
  double gbps = 0;    // 0: unknown
  std::string where;  // "lldp.json:12", for messages

  bool operator==(const SeenLink&) const = default;
};

// Position of a node by labels.
struct SeenPlace {
  std::string scheme;                                       // of the labels: "AWS"
  std::vector<std::pair<std::string, std::string>> levels;  // name and value, outermost first

  bool operator==(const SeenPlace&) const = default;
};

// A Kubernetes node.
struct SeenNode {
  std::string name;
  std::string uid;                            // of the object; empty: not in the source
  int gpus = 0;                               // offered by kubelet, else of the agent's facts
  bool offers_gpus = false;                   // kubelet knows GPUs, even if it offers none now
  int hcas = 0;                               // HCAs, or more if they are shares
  std::string unschedulable;                  // why no pod can be placed there; empty: pods can
  std::optional<SharedList<SeenRail>> rails;  // of the agent's facts; nullopt: no facts
  std::string facts_fault;                    // why the facts cannot be read
  std::vector<SeenPlace> places;
  std::string where;

  bool operator==(const SeenNode&) const = default;
};

// Devices held by a pod.
struct SeenUse {
  std::string node;
  int gpus = 0;
  int hcas = 0;  // HCAs or shares

  bool operator==(const SeenUse&) const = default;
};

// A naming scheme of RDMA devices of nodes (rail_names.h).
struct SeenRailNames {
  std::string name;     // of the object that defines it
  std::string pattern;  // "rdma_r%rail_id%"
  int devices = 1;      // per rail: each plane of each of its NICs
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
