// SPDX-License-Identifier: Apache-2.0
//
// Determines which devices containers hold. Pure. Used by Agent.
//
// After its start, kubelet answers before it knows all pods. Trusting such an answer would remove
// files of running containers, and give their devices to others.
#ifndef RAILHEAD_DEVICE_PLUGIN_HOLDINGS_HOLDINGS_H_
#define RAILHEAD_DEVICE_PLUGIN_HOLDINGS_HOLDINGS_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "device-plugin/grant/allocation_record.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// All sources of information.
struct Evidence {
  std::optional<PodList> listed = {};  // kubelet's list; nullopt if it does not answer
  PodName own_pod = {};  // the agent's own pod, which kubelet must list; "" if unknown
  // Kubelet's checkpoint; nullopt if it cannot be read.
  std::optional<std::vector<CheckpointEntry>> checkpoint = {};
  AllocationRecords records = {};  // the agent's own
  bool young = false;              // kubelet started recently
  // Devices that this kubelet listed before, by resource: if it no longer lists them, the pod has
  // ended.
  std::map<std::string, std::set<std::string>> seen = {};
};

struct Holdings {
  // Resource to the ids that containers hold or may hold: those that kubelet allocated, and those
  // that they are bound to.
  std::map<std::string, std::set<std::string>> by_resource = {};
  std::set<std::string> bound = {};  // ids that containers really have, whatever ids kubelet uses
  // True if containers hold nothing else. Remove or give away unheld items only then.
  bool complete = false;
};

// Kubelet's list is complete if it contains the agent's own pod and, soon after kubelet's start,
// everything in the checkpoint (from which kubelet removes terminated pods only later). Otherwise
// the union of all evidence and `before` is held.
Holdings Weigh(const Holdings& before, const Evidence& evidence);

// Returns the uid of the pod of a listed container, by the checkpoint; "" if it is not known for
// certain. A deleted pod may still be recorded with some of these devices, but not with all.
std::string UidOf(const ContainerDevices& container,
                  const std::vector<CheckpointEntry>& checkpoint);

// Pods that kubelet has listed with devices, by uid.
using PodsByUid = std::map<std::string, PodName>;

// Adds the listed pods, and forgets those that the checkpoint no longer has.
void LearnPods(const std::vector<CheckpointEntry>& checkpoint, const PodList& listed,
               PodsByUid& pods);

// Returns the entries of pods that may start a container: all but those of known pods that kubelet
// no longer lists. Kubelet lists no devices of ordinary init containers, and removes the entries of
// a pod that has ended at its next allocation.
std::vector<CheckpointEntry> EntriesInUse(const std::vector<CheckpointEntry>& checkpoint,
                                          const PodList& listed, const PodsByUid& pods);

// Returns the ids of whole HCAs that are held, entirely or in part.
std::set<std::string> HeldHcas(const Holdings& holdings);

// Returns the rails of whole HCAs that are held, of those in `inventory` (as offered) and those
// that devices of `by_resource` stand for. A shared HCA is free as long as it is offered.
std::set<int> RailsInUse(const Holdings& holdings, const fabric::NodeInventory& inventory,
                         const std::map<std::string, std::vector<Device>>& by_resource);

// Returns true if one of `ids` is the HCA's id, or its PCI address.
bool Holds(const std::set<std::string>& ids, const fabric::Hca& hca);

// Returns true if one of `ids` (whole HCAs) may be the HCA that had this name and PCI address: it
// may have been renamed since.
bool MayBeAmong(const std::set<std::string>& ids, const std::string& name,
                const std::string& pci_address);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_HOLDINGS_HOLDINGS_H_
