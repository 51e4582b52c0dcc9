// SPDX-License-Identifier: Apache-2.0
//
// Who holds which devices, as far as can be told. Pure.
//
// A kubelet that has just started answers, but knows no pods yet, or only some of them. Taken for
// the truth, such an answer would take away the files of containers that run, and give away what
// they hold.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_HOLDINGS_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_HOLDINGS_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device-plugin/grant/allocation_record.h"
#include "device-plugin/kubelet/kubelet_checkpoint.h"
#include "device-plugin/offer/container_devices.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// All that tells of it.
struct Evidence {
  std::optional<PodList> listed = {};  // by kubelet; nothing when it does not answer
  PodName own_pod = {};                // the agent's own, which kubelet must list; "" where unknown
  // Kubelet's file; nothing when it cannot be read.
  std::optional<std::vector<CheckpointEntry>> checkpoint = {};
  AllocationRecords records = {};  // our own
  bool young = false;              // kubelet has started a moment ago
  // What this kubelet has listed before, by resource: where it does not any more, a pod has ended.
  std::map<std::string, std::set<std::string>> seen = {};
};

struct Holdings {
  // Resource to the ids that containers hold or may hold: those that kubelet gave them, and those
  // that they are bound to.
  std::map<std::string, std::set<std::string>> by_resource = {};
  std::set<std::string> bound = {};  // ids that containers have, whatever kubelet calls them
  // Containers hold nothing else. Only then may be removed, or given away, what is not held here.
  bool complete = false;
};

// What kubelet lists is complete when it lists the agent's own pod, and while it is young also all
// that its file names (which it cleans of pods that have ended only later). Otherwise all evidence
// counts, and what was held `before` still is.
Holdings Weigh(const Holdings& before, const Evidence& evidence);

// The ids of the whole HCAs of which something is held.
std::set<std::string> HeldHcas(const Holdings& holdings);

// Whether one of `ids` is the HCA's, or its PCI address where that names it.
bool Holds(const std::set<std::string>& ids, const fabric::Hca& hca);

// Whether one of `ids` (whole HCAs) may be the HCA that had this name and PCI address once: it may
// have been renamed since.
bool MayBeAmong(const std::set<std::string>& ids, const std::string& name,
                const std::string& pci_address);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_HOLDINGS_H_
