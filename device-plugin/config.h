// SPDX-License-Identifier: Apache-2.0
//
// What the administrator decides about a node's HCAs: which resources they are offered as, which
// rail each of them is, and whose PCI functions count as GPUs.
//
// Everything but LoadAgentConfig is a pure function of values. All of it is safe to call from any
// thread.
#ifndef RAILHEAD_DEVICE_PLUGIN_CONFIG_H_
#define RAILHEAD_DEVICE_PLUGIN_CONFIG_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device-plugin/selector.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

struct ResourceConfig {
  std::string name;  // "rdma/hca"
  std::vector<Selector> selectors =
      {};         // any of them; empty: every HCA that no other resource takes
  int slots = 1;  // how many containers may share each HCA; 1 is exclusive

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

  bool operator==(const AgentConfig&) const = default;
};

// Reads YAML or JSON (config.schema.json describes it for editors):
//
//   resources:                  # optional; default: one resource rdma/hca that takes every HCA
//   - name: rdma/hca            # unique
//     selectors:                # optional; see Selector. At most one resource has none
//     - {vendors: ["15b3"], linkLayers: [InfiniBand], rails: [0, 1]}
//     slots: 4                  # optional, 1 to 128 (default 1)
//   rails:                      # optional: overrides rail numbers, which are 0 to 1023
//   - {rail: 0, interface: eth2}               # one of interface, pciAddress and name
//   - {rail: 1, pciAddress: "0000:18:00.0"}
//   gpuVendors: ["8086"]        # optional
//
// Ids and PCI addresses may be written in either case and become lower case, as in Hca. An empty
// text is the default configuration; an empty list of resources, of selectors or of a selector's
// entries is refused, since it could mean all as well as nothing.
//
// InvalidArgument says where, what and how to mend it: `agent.yaml:7:
// resources[0].selectors[1].vendors[0]: "15b" is not four hex digits; ...`, where `source` is what
// the text is called. Besides values that are wrong it refuses unknown fields, fields and rails and
// devices that appear twice, texts of more than 1 MiB or more than one document, and aliases that
// stand for more than 100000 values in all.
absl::StatusOr<AgentConfig> ParseAgentConfig(absl::string_view yaml, absl::string_view source);

// The same from a regular file, links followed (a ConfigMap is mounted as links). Blocks on no
// pipe. NotFound, PermissionDenied, ... when it cannot be read; InvalidArgument for anything else
// than a file of at most 1 MiB, and as above.
absl::StatusOr<AgentConfig> LoadAgentConfig(const std::string& path);

// For each resource the indices of the HCAs that are its own, ascending. An HCA goes to the first
// resource that has a selector which matches it, else to the resource without selectors, if there
// is one. What is not offered goes to none. Selectors see the rail numbers that `hcas` have now:
// call ApplyRails before.
std::vector<std::vector<size_t>> ShareOut(const AgentConfig& config,
                                          const std::vector<fabric::Hca>& hcas);

// Numbers the rails anew and sorts `hcas` by them: an HCA that an entry names gets the entry's
// number; the others keep the order of fabric::AssignRails and get the lowest numbers that no entry
// has. What is not offered comes last and is no rail (-1), even where an entry names it.
//
// The number of an entry stays reserved when its HCA is missing, so that the others have the same
// rails as on a node that has it. When an entry names several HCAs (two on one interface), the
// first gets the number; when several entries name one HCA, the first entry counts.
void ApplyRails(const std::vector<RailEntry>& entries, std::vector<fabric::Hca>& hcas);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CONFIG_H_
