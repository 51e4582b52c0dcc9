// SPDX-License-Identifier: Apache-2.0
//
// What the administrator decides about a node's HCAs: which resources they are offered as, which
// rail each of them is, and whose PCI functions count as GPUs.
//
// Pure functions of values; safe to call from any thread.
#ifndef RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_H_
#define RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_H_

#include <cstddef>
#include <string>
#include <vector>

#include "device-plugin/config/selector.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// What kubelet calls the devices of a resource.
enum class DeviceIds {
  kName,        // "mlx5_0-0000_18_00_0"; see device_list.h
  kPciAddress,  // "0000:18:00.0", as the CNI plugins that Multus calls want it
};

struct ResourceConfig {
  std::string name;  // "rdma/hca"
  std::vector<Selector> selectors =
      {};                 // any of them; empty: every HCA that no other resource takes
  int slots = 1;          // how many containers may share each HCA; 1 is exclusive
  bool per_rail = false;  // offered as one resource for each rail: "rdma/rail-0", ...
  bool all_hcas = false;  // offered as one device that stands for all of its HCAs
  DeviceIds device_ids = DeviceIds::kName;
  fabric::PodNetwork network = fabric::PodNetwork::kHost;  // how its pods reach the network
  bool move_interfaces = false;  // the interfaces go into the pod with the HCAs, by CDI

  bool operator==(const ResourceConfig&) const = default;
};

// Gives a rail number to one HCA: the one that the only text which is not empty names.
struct RailEntry {
  int rail = 0;
  std::string interface = "";    // of the data port
  std::string pci_address = "";  // "0000:18:00.0"
  std::string name = "";         // of the RDMA device

  bool operator==(const RailEntry&) const = default;
};

// As constructed it is the default: one resource that takes every HCA, each for one container.
struct AgentConfig {
  std::vector<ResourceConfig> resources = {{.name = "rdma/hca"}};
  std::vector<RailEntry> rails;
  std::vector<std::string> gpu_vendors;  // PCI vendor ids in lower case, beside the built-in ones
  bool nccl_topology = false;            // containers get the machine's PCI tree as a file for NCCL

  bool operator==(const AgentConfig&) const = default;
};

// The PCI vendor ids whose functions count as GPUs: the built-in ones and the configuration's.
std::vector<std::string> GpuVendors(const AgentConfig& config);

// The name under which the resource offers an HCA on this rail.
std::string OfferedName(const ResourceConfig& resource, int rail);

// Whether the HCA is wanted as a rail in place of the function whose port it shares (see
// fabric::ChooseRails): a selector names its role, and neither pf nor bond.
bool IsChosen(const AgentConfig& config, const fabric::Hca& hca);

// For each resource the indices of the HCAs that are its own, ascending. An HCA goes to the first
// resource that has a selector which matches it, else to the resource without selectors, if there
// is one. What is not offered goes to none. Selectors see the rail numbers that `hcas` have now:
// call ApplyRails before.
std::vector<std::vector<size_t>> ShareOut(const AgentConfig& config,
                                          const std::vector<fabric::Hca>& hcas);

// Numbers the rails anew and sorts `hcas` by them: an HCA that an entry names gets the entry's
// number; the others keep the order of their rails, and what was free between them, in the lowest
// numbers that no entry has. What is not offered comes last and is no rail (-1), even where an
// entry names it.
//
// The number of an entry stays reserved when its HCA is missing, so that the others have the same
// rails as on a node that has it. When an entry names several HCAs (two on one interface), the
// first gets the number; when several entries name one HCA, the first entry counts. What would be
// numbered beyond fabric::kHighestRail is no rail.
void ApplyRails(const std::vector<RailEntry>& entries, std::vector<fabric::Hca>& hcas);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_H_
