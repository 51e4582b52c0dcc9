// SPDX-License-Identifier: Apache-2.0
//
// The node's persistent map of HCAs: device id, rail, and how to recognize the HCA after a rename.
// Pure. Used by NextState; stored by RailMapFile.
//
// An HCA is recognized by its PCI function, and by its name if a function has several devices
// (these must not exchange names between two scans). After a driver reload, a rename by udev or a
// move of its interface into a pod, it keeps device id and rail. The map is on disk, so this holds
// over restarts of the agent and the node, even for an HCA missing then.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_RAIL_MAP_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_RAIL_MAP_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device-plugin/holdings/holdings.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

struct RailMap {
  // In rail order, each as last seen; only rails. `netdev` is the host's name of the interface.
  std::vector<fabric::Hca> hcas;
  // PCI functions with several devices, one of which a container may hold: a new name there does
  // not identify the device.
  std::set<std::string> several;
  // Ids to ids of other devices of the same function, or without one, that it may be under another
  // name.
  std::map<std::string, std::set<std::string>> may_be;

  bool operator==(const RailMap&) const = default;
};

// Sets id, rail and the host's interface name of each HCA of `inventory`, which was just read; adds
// missing HCAs as unusable; updates `map`.
//
// - A new HCA takes the id under which a container holds it, if any: an earlier agent, or a lost
//   map, may have used another id.
// - Rails do not change while any device is or may be held. A new HCA takes its position by PCI
//   address, or the lowest free number until nothing is held.
// - A missing HCA stays, because a NIC that is down must not shift its neighbours. Virtual
//   functions, subfunctions and devices without a PCI function stay only while they are or may be
//   held.
// - If devices of one function, or without one and with their interfaces in pods, change their
//   names, they cannot be distinguished: a new one is unusable until the pods that hold the others
//   end.
// - One port is one rail, as fabric::ChooseRails decided before, even while its function is away. A
//   held rail stays a rail until it is released.
void Recognize(const Holdings& holdings, RailMap& map, fabric::NodeInventory& inventory);

// Identifies the machine of a map, because a disk may be copied.
struct Machine {
  std::string node;   // node name in Kubernetes
  std::string board;  // board serial of the firmware, "" if unknown

  bool operator==(const Machine&) const = default;
};

// Deterministic: equal values give equal bytes.
std::string ToJson(const RailMap& map, const Machine& machine);

// Parses untrusted text. Rejects a text that is not a map, or of another version or machine; the
// message gives the reason.
absl::StatusOr<RailMap> ParseRailMap(absl::string_view json, const Machine& machine);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_RAIL_MAP_H_
