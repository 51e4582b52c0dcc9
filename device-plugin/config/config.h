// SPDX-License-Identifier: Apache-2.0
//
// Configuration of the node agent: the resources that HCAs are offered as, rail numbers, and PCI
// vendors of GPUs. Read by config_reader.h, used by Agent.
//
// Pure functions, safe on any thread.
#ifndef RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_H_
#define RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_H_

#include <cstddef>
#include <string>
#include <vector>

#include "device-plugin/config/selector.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Device IDs of a resource in kubelet.
enum class DeviceIds {
  kName,        // "mlx5_0-0000_18_00_0"; see device_list.h
  kPciAddress,  // "0000:18:00.0", as required by CNI plugins that Multus calls
};

struct ResourceConfig {
  std::string name;  // "rdma/hca"
  std::vector<Selector> selectors =
      {};                 // any of them; empty: every HCA that no other resource selects
  int slots = 1;          // containers per HCA; 1 is exclusive
  bool per_rail = false;  // one resource per rail: "rdma/rail-0", ...
  bool all_hcas = false;  // one device that stands for all HCAs of the resource
  DeviceIds device_ids = DeviceIds::kName;
  fabric::PodNetwork network = fabric::PodNetwork::kHost;  // network of its pods
  bool move_interfaces = false;  // CDI moves the interfaces into the pod with the HCAs

  bool operator==(const ResourceConfig&) const = default;
};

// Gives a rail number to one HCA, named by the one field that is not empty.
struct RailEntry {
  int rail = 0;
  std::string interface = "";    // of the data port
  std::string pci_address = "";  // "0000:18:00.0"
  std::string name = "";         // of the RDMA device

  bool operator==(const RailEntry&) const = default;
};

// By default: one resource with every HCA, each exclusive to one container.
struct AgentConfig {
  std::vector<ResourceConfig> resources = {{.name = "rdma/hca"}};
  std::vector<RailEntry> rails;
  // PCI vendor ids in lower case, in addition to the built-in ones
  std::vector<std::string> gpu_vendors;
  bool nccl_topology = false;  // gives containers the machine's PCI tree as a file for NCCL

  bool operator==(const AgentConfig&) const = default;
};

// Returns the PCI vendor ids of GPUs: built-in and configured.
std::vector<std::string> GpuVendors(const AgentConfig& config);

// Returns the name under which the resource offers an HCA on this rail.
std::string OfferedName(const ResourceConfig& resource, int rail);

// Returns true if a selector names the HCA's role, other than pf and bond: then this HCA is the
// rail, instead of the function whose port it shares (fabric::ChooseRails).
bool IsChosen(const AgentConfig& config, const fabric::Hca& hca);

// Returns for each resource the indices of its HCAs, ascending. An HCA goes to the first resource
// with a selector that matches it, else to the resource without selectors, if any. HCAs that are
// not offered go to none. Selectors see the rail numbers in `hcas`: call ApplyRails first.
std::vector<std::vector<size_t>> ShareOut(const AgentConfig& config,
                                          const std::vector<fabric::Hca>& hcas);

// Renumbers rails and sorts `hcas` by rail. An HCA named by an entry gets the entry's number. The
// others keep their order, and the gaps between them, in the lowest numbers without an entry. HCAs
// that are not offered come last and are not rails (-1), even if an entry names them.
//
// The number of an entry stays reserved if its HCA is missing, so that all nodes number the others
// alike. If an entry names several HCAs (two on one interface), the first gets the number; if
// several entries name one HCA, the first applies. Numbers above fabric::kHighestRail are not
// assigned.
void ApplyRails(const std::vector<RailEntry>& entries, std::vector<fabric::Hca>& hcas);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_H_
