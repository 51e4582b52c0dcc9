// SPDX-License-Identifier: Apache-2.0
//
// The node agent's configuration as people write it.
#ifndef RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_READER_H_
#define RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_READER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device-plugin/config/config.h"

namespace railhead::device_plugin {

// Reads YAML or JSON (config.schema.json describes it for editors):
//
//   resources:                  # optional; default: one resource rdma/hca that takes every HCA
//   - name: rdma/hca            # unique
//     selectors:                # optional; see Selector. At most one resource has none
//     - {vendors: ["15b3"], linkLayers: [InfiniBand], rails: [0, 1]}
//     slots: 4                  # optional, 1 to 128 (default 1)
//     perRail: true             # optional: rdma/hca-0, rdma/hca-1, ... in place of rdma/hca
//     allHcas: true             # optional: one device is all HCAs of the resource
//     deviceIds: pciAddress     # optional, or name (the default); not with slots
//     network: attached         # optional, or host (the default), or moved
//     moveInterfaces: true      # optional; with network: moved
//   rails:                      # optional: overrides rail numbers, which are 0 to 63
//   - {rail: 0, interface: eth2}               # one of interface, pciAddress and name
//   - {rail: 1, pciAddress: "0000:18:00.0"}
//   gpuVendors: ["8086"]        # optional
//   ncclTopology: true          # optional, false by default
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

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CONFIG_CONFIG_READER_H_
