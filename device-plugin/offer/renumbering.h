// SPDX-License-Identifier: Apache-2.0
//
// Finds containers whose device nodes are no longer those of their HCAs. Pure. Used by NextState
// after each scan, and by PluginService before a container starts.
//
// The number in /dev/infiniband/uverbsN belongs to the order in which the kernel found the HCAs, so
// it may be another HCA's after a reload of the driver or a boot. Kubelet gives a container that
// starts again the nodes of its admission, and a container that runs keeps the right to open these
// numbers. With CDI, a container has the nodes of its last start.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_RENUMBERING_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_RENUMBERING_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "fabric/inventory.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {

// Devices that a container was given at its last start.
struct Grant {
  std::string pod_uid;                 // "" if unknown
  ContainerDevices holder;             // namespace and pod are "" if unknown
  std::set<std::string> rails_files;   // its rails.json, of each resource (rails_file_name.h)
  std::vector<fabric::PodRail> rails;  // in these; empty if they cannot be read

  bool operator==(const Grant&) const = default;
};

// Returns what containers with plain device nodes were given, by kubelet's checkpoint: one grant
// for each container, without `rails`.
std::vector<Grant> GrantsIn(const std::vector<CheckpointEntry>& checkpoint);

// Returns the grants of containers that hold exactly these ids of the resource: of one pod, whose
// init container may have had them before another container.
std::vector<Grant> GrantsOf(const std::vector<Grant>& grants, const std::string& resource,
                            const std::set<std::string>& ids);

// Returns the grants of containers that kubelet lists, with their names. `complete`: see Holdings;
// if false, containers that it does not list may run as well.
std::vector<Grant> LiveGrants(std::vector<Grant> grants,
                              const std::vector<ContainerDevices>& listed, bool complete);

// A container that cannot open its HCAs, can open others, or has names of others.
struct Renumbering {
  ContainerDevices holder;
  std::string message;                      // what was given, what it is now, and the fix
  std::map<std::string, std::string> hcas;  // affected HCAs (whole ids), and why
};

// Compares a grant with the node's current state. Nullopt if the container has exactly the device
// nodes of its HCAs, also if they were exchanged among them: programs find the node of an HCA by
// its name. A missing HCA alone does not count.
std::optional<Renumbering> FindRenumbering(const Grant& grant,
                                           const fabric::NodeInventory& inventory);

// Compares all of them, and sets the fault of each HCA: whether it is affected.
std::vector<Renumbering> WithholdRenumbered(const std::vector<Grant>& grants,
                                            fabric::NodeInventory& inventory);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_RENUMBERING_H_
