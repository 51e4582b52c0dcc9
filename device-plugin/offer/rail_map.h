// SPDX-License-Identifier: Apache-2.0
//
// The HCAs that the node remembers: what kubelet calls each of them, which rail it is, and how to
// recognize it when the kernel calls it otherwise. Pure.
//
// An HCA is recognized by its PCI function, and by its name where a function has several devices
// (which must not take each other's names between two looks).
// Its driver may be loaded anew, udev may rename it, its interface may be moved into a pod: it
// stays the same device for kubelet and the same rail. The map is kept on disk, so that this holds
// over restarts of the agent and of the node, and for an HCA that is missing then.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_RAIL_MAP_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_RAIL_MAP_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device-plugin/offer/holdings.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

struct RailMap {
  // In the order of rails, as each was seen last; those that are no rail are not in it. `netdev` is
  // the host's name for the interface.
  std::vector<fabric::Hca> hcas;
  // Places (PCI functions) with several devices, one of which a container may have: there a new
  // name does not tell which of them it is.
  std::set<std::string> several;
  // Ids to those of other devices of the same place, one of which it may be under another name.
  std::map<std::string, std::set<std::string>> may_be;

  bool operator==(const RailMap&) const = default;
};

// Gives each HCA of `inventory`, which was just read, its id, its rail, and the host's name of its
// interface; adds the HCAs that are missing, unusable; and brings `map` up to date.
//
// - A new HCA takes the id under which a container holds it, if there is one: an earlier agent, or
//   a lost map, may have called it otherwise.
// - Rails stay as they are while anything is or may be held. A new HCA takes the place that its PCI
//   address has among the others, or else the lowest free number until nothing is held.
// - An HCA that is missing stays, since a NIC that is down must not shift its neighbours. A virtual
//   function, a subfunction, and what has no PCI function come and go; they stay while they are or
//   may be held.
// - Of several devices of one function it cannot be told which is which when their names change: a
//   new one is not usable before the pods that hold the others have ended.
// - One port is one rail, as fabric::ChooseRails has decided before, also while the function of the
//   port is away. What is held remains a rail until it is not.
void Recognize(const Holdings& holdings, RailMap& map, fabric::NodeInventory& inventory);

// To which machine a map belongs: a disk may be copied to another one.
struct Machine {
  std::string node;   // its name in Kubernetes
  std::string board;  // what its firmware calls it, "" when unknown

  bool operator==(const Machine&) const = default;
};

// The same value always gives the same bytes.
std::string ToJson(const RailMap& map, const Machine& machine);

// Reads what ToJson has written, or anything else: refuses what is no map, is another version's, or
// that of another machine; the message says which.
absl::StatusOr<RailMap> ParseRailMap(absl::string_view json, const Machine& machine);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_RAIL_MAP_H_
